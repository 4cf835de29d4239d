"""Ragged rows: each row is stored from its first column to its last nonzero."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def ragged(
    data: T.handle, indptr: T.handle, m: T.int64, n: T.int64, longest: T.int64, stored: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (longest, stored), indptr, "int32")
    A = T.sp.match_buffer(data, (I, J), "float32")
    T.sp.map(lambda i, j: (i, j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def ragged(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix whose rows are dense, but differ in length.

    Its arrays are `indptr` (m + 1) and `data` (stored). `longest` is the length of the longest row.

    >>> ragged().buffer.axes
    ('I', 'J')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format("ragged", ragged)
