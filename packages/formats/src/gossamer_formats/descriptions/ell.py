"""ELLPACK (ELL): the same number of slots for every row."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    A = T.sp.match_buffer(data, (I, J), "float32")
"""


@lru_cache(maxsize=MAX_VARIANTS)
def ell(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix with `width` slots for every row.

    Its arrays are `indices` and `data` (m by width); unused slots have the column n. A conversion takes the
    length of the longest row as the width unless a larger one is given.

    >>> ell().axes[1].padded
    True
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format("ell", ell)
