"""Padded CSR: the nonzeros of each row in chunks of a fixed number of slots."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def padded_csr(
    data: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, longest: T.int64, chunks: T.int64, width: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    JO = T.sp.dense_varied(I, (longest, chunks), indptr, "int32")
    JI = T.sp.compressed_fixed(JO, (n, width), indices, "int32")
    A = T.sp.match_buffer(data, (I, JO, JI), "float32")
    T.sp.map(lambda i, jo, ji: (i, ji), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def padded_csr(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in chunks of `width` slots.

    Its arrays are `indptr` (m + 1), the first chunk of each row, and `indices` and `data` (chunks by width);
    unused slots have the column n. `longest` is the largest number of chunks of a row.

    >>> padded_csr().buffer.axes
    ('I', 'JO', 'JI')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format("padded_csr", padded_csr, parameters={"width": 4}, example_parameters={"width": 2})
