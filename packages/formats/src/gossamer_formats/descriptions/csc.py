"""Compressed sparse columns (CSC): the rows and values of the nonzeros, column by column."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.external_formats.binsparse_format import BinsparseFormat
from gossamer_formats.external_formats.scipy_compressed import SCIPY_CSC
from gossamer_formats.external_formats.torch_layout import TorchLayout
from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def csc(data: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    J = T.sp.dense_fixed(n)
    I = T.sp.compressed_varied(J, (m, nnz), (indptr, indices), "int32")
    A = T.sp.match_buffer(data, (J, I), "float32")
    T.sp.map(lambda j, i: (i, j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def csc(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in compressed sparse columns.

    Its arrays are `data` (nnz), `indptr` (n + 1) and `indices` (nnz).

    >>> csc("float64").buffer.axes
    ('J', 'I')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "csc",
    csc,
    adapters=(
        SCIPY_CSC,
        TorchLayout("sparse_csc", indptr="ccol_indices", indices="row_indices"),
        BinsparseFormat(("CSC",), {"indptr": "pointers_to_1", "indices": "indices_1"}),
    ),
)
