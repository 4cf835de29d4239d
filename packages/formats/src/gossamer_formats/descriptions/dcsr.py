"""Doubly compressed sparse rows (DCSR): CSR of the rows that have nonzeros, and their numbers."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.external_formats.binsparse_format import BinsparseFormat
from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def dcsr(
    data: T.handle, rows: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, stored: T.int64, nnz: T.int64,
) -> None:
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_fixed(O, (m, stored), rows, "int32", padded=False)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    A = T.sp.match_buffer(data, (O, I, J), "float32")
    T.sp.map(lambda o, i, j: (i, j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def dcsr(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in doubly compressed sparse rows (Buluc and Gilbert, 2008).

    Its arrays are `rows` (stored rows), `indptr` (stored rows + 1), `indices` and `data` (nnz).

    >>> dcsr().buffer.axes
    ('O', 'I', 'J')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "dcsr",
    dcsr,
    adapters=(
        BinsparseFormat(
            ("DCSR",), {"rows": "indices_0", "indptr": "pointers_to_1", "indices": "indices_1"}
        ),
    ),
)
