"""Matrices in CSR as operands: tensors, and SciPy's matrices converted for one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer.operator_calls.kernels import default_check
from gossamer.operator_calls.program import Variant
from gossamer_formats import (
    Array,
    SparseTensor,
    Storage,
    borrow_scipy,
    check_storage,
    storage_stats,
)
from gossamer_formats.checks.storage_checks import INDEX_DTYPES, VALUE_DTYPES
from gossamer_formats.conversion.recognized_formats import is_format
from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_ir.interchange.records import Stats, size_class

VALUES = "a"
"""The parameter for the values of a matrix."""

CHECKED = ("indptr", "indices")
"""The parameters for arrays whose contents were checked when the operands were."""

POINTERS = (*CHECKED, VALUES)
SCALARS = ("m", "n", "nnz")
"""The parameters of kernels for the structure of a matrix, in the order of `FixedArguments`."""

NATIVE: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in VALUE_DTYPES}
"""The dtypes of values, in the byte order of this machine."""

DTYPE_NUMBERS = {
    (np.dtype(indptr), np.dtype(indices), values): number
    for number, (indptr, indices, values) in enumerate(
        (indptr, indices, values)
        for indptr in INDEX_DTYPES
        for indices in INDEX_DTYPES
        for values in NATIVE.values()
    )
}
"""A number for each combination of the dtypes of offsets, columns and values."""


class CsrMatrix(NamedTuple):
    """A checked CSR matrix: a tensor's own arrays, or those of a SciPy matrix for one call."""

    storage: Storage
    tensor: SparseTensor | None

    @property
    def rows(self) -> int:
        return self.storage.sizes["m"]

    @property
    def columns(self) -> int:
        return self.storage.sizes["n"]

    @property
    def nnz(self) -> int:
        return self.storage.sizes["nnz"]

    @property
    def dtype(self) -> str:
        return self.storage.description.buffer.dtype

    @property
    def arrays(self) -> dict[str, Array]:
        """Its arrays by the names of the kernels' parameters."""
        arrays = self.storage.arrays
        return {"indptr": arrays["indptr"], "indices": arrays["indices"], VALUES: arrays["data"]}

    @property
    def plan_key(self) -> object:
        """The key of plans that fit the matrix: its dtypes, and the class of its sizes."""
        indptr, indices, values = self.arrays.values()
        number = DTYPE_NUMBERS[indptr.dtype, indices.dtype, values.dtype]
        return number, size_class(self.rows, self.columns, self.nnz)

    def stats(self) -> Stats:
        """The stats of the matrix that rules for schedules use."""
        return self.tensor.stats if self.tensor is not None else storage_stats(self.storage)

    def variant(self, features: int | None = None, *, dtype: str = "") -> Variant:
        """Return the variant of an operator for the matrix; the dtype is by default that of the matrix."""
        axis = self.storage.description.axes[-1]
        offsets, columns = indptr_of(axis), indices_of(axis)
        assert offsets is not None
        assert columns is not None
        return Variant(dtype or self.dtype, offsets.dtype, columns.dtype, features)


def sparse_operand(matrix: Any) -> CsrMatrix:
    """Return a tensor or a SciPy matrix in CSR: a tensor in another format is converted once, a SciPy matrix
    is converted and checked (`FormatError`).

    A tensor that borrows its arrays is checked as well, because the caller can write to them.
    """
    if isinstance(matrix, SparseTensor):
        tensor = matrix if is_format(matrix.description, "csr") else matrix.tocsr()
        if not tensor.is_borrowed:
            return CsrMatrix(tensor.storage, tensor)
        check_storage(tensor.storage, check=default_check())
        return CsrMatrix(tensor.storage, None)
    storage = borrow_scipy(matrix, check=default_check())
    return CsrMatrix(storage, None)


def pattern_operand(matrix: Any, *, dtype: str) -> CsrMatrix:
    """Like `sparse_operand`, for a matrix whose values are ignored: bools and integers of a SciPy matrix are
    converted to this dtype ("": float32)."""
    kind = getattr(getattr(matrix, "dtype", None), "kind", "")
    # Only bools and integers are converted, which adjacency matrices have.
    if isinstance(matrix, SparseTensor) or kind not in ("b", "i", "u"):
        return sparse_operand(matrix)
    tensor = borrow_scipy(matrix, dtype=dtype or "float32", check=default_check())
    return CsrMatrix(tensor, None)
