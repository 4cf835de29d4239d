"""Compressed sparse rows (CSR): the columns and values of the nonzeros, row by row."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.external_formats.binsparse_format import BinsparseFormat
from gossamer_formats.external_formats.scipy_compressed import SCIPY_CSR
from gossamer_formats.external_formats.torch_layout import TorchLayout
from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.pruning.rules import LARGEST_ELEMENTS
from gossamer_ir.nodes import (
    CompressedVaried,
    DenseFixed,
    FormatDescription,
    Param,
    SparseBuffer,
    Var,
)


@lru_cache(maxsize=MAX_VARIANTS)
def csr(
    dtype: str = "float32",
    *,
    indptr_dtype: str = "int32",
    indices_dtype: str = "int32",
    sorted: bool = True,
    unique: bool = True,
) -> FormatDescription:
    """Return the description of an m by n matrix in compressed sparse rows.

    Its arrays are `data` (nnz), `indptr` (m + 1) and `indices` (nnz). `sorted` declares that the columns
    of a row never decrease, `unique` that no row has a column twice.

    >>> csr("float64").buffer.axes
    ('I', 'J')
    """
    # Nodes instead of a script: every operator describes CSR, and the parser takes a third of the time to
    # import this package.
    rows, columns, nnz = (Var(name, "int64") for name in ("m", "n", "nnz"))
    column_axis = CompressedVaried(
        name="J",
        parent="I",
        length=columns,
        nnz=nnz,
        indptr="indptr",
        indices="indices",
        indptr_dtype=indptr_dtype,
        indices_dtype=indices_dtype,
        sorted=sorted,
        unique=unique,
    )
    handles = tuple(Param(name, "handle") for name in ("data", "indptr", "indices"))
    sizes = tuple(Param(name, "int64") for name in ("m", "n", "nnz"))
    return FormatDescription(
        name="csr",
        params=(*handles, *sizes),
        axes=(DenseFixed("I", rows), column_axis),
        buffer=SparseBuffer("A", ("I", "J"), dtype, handle="data"),
    )


FORMAT = Format(
    "csr",
    csr,
    adapters=(
        SCIPY_CSR,
        TorchLayout("sparse_csr", indptr="crow_indices", indices="col_indices"),
        BinsparseFormat(("CSR",), {"indptr": "pointers_to_1", "indices": "indices_1"}),
        LARGEST_ELEMENTS,
    ),
)
