"""Matrices in CSR: tensors, and SciPy's matrices converted for one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gossamer.compilation.build_kernels import fact_checker
from gossamer.operator_calls.operands.long_rows import MAX_SUM, segment_offsets
from gossamer.operator_calls.operator_kernels import KernelSpec
from gossamer.operator_calls.operator_program import OperatorProgram, Variant
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_formats import (
    Array,
    SparseTensor,
    Storage,
    borrow_scipy,
    require_valid_storage,
    storage_stats,
)
from gossamer_formats.internal_api import INDEX_DTYPES, NUMPY_DTYPES, is_format
from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_ir.interchange.records import Stats, size_class

VALUES_PARAMETER = "a"
"""The parameter for the values of a matrix."""

CHECKED = ("indptr", "indices")
"""The parameters for arrays whose contents were checked when the operands were."""

POINTERS = (*CHECKED, VALUES_PARAMETER)
SIZES_OF_MATRIX = ("m", "n", "nnz")
"""The parameters of kernels for the structure of a matrix, in the order of `FixedArguments`."""

DTYPE_NUMBERS = {
    (np.dtype(indptr), np.dtype(indices), values): number
    for number, (indptr, indices, values) in enumerate(
        (indptr, indices, values)
        for indptr in INDEX_DTYPES
        for indices in INDEX_DTYPES
        for values in map(np.dtype, NUMPY_DTYPES)
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
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    @property
    def dtype(self) -> str:
        return self.storage.description.buffer.dtype

    @property
    def value_count(self) -> int:
        return self.nnz

    @property
    def arrays(self) -> dict[str, Array]:
        """Its arrays by the names of the kernels' parameters."""
        arrays = self.storage.arrays
        return {
            "indptr": arrays["indptr"],
            "indices": arrays["indices"],
            VALUES_PARAMETER: arrays["data"],
        }

    @property
    def memory(self) -> tuple[Array, ...]:
        return tuple(self.arrays.values())

    @property
    def plan_key(self) -> object | None:
        """Its dtypes, and the class of its sizes."""
        indptr, indices, values = self.memory
        number = DTYPE_NUMBERS.get((indptr.dtype, indices.dtype, values.dtype))
        # Only the description tells values of bfloat16 from integers, so that they have no plans.
        if number is None:
            return None
        return number, size_class(self.rows, self.columns, self.nnz)

    @property
    def structure_params(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return POINTERS, SIZES_OF_MATRIX

    @property
    def verified(self) -> tuple[str, ...]:
        return CHECKED

    def stats(self) -> Stats:
        """Return the stats of the matrix that rules for schedules use."""
        return self.tensor.stats if self.tensor is not None else storage_stats(self.storage)

    def kernel_spec(
        self, program: OperatorProgram, *, dtype: str, features: int | None
    ) -> KernelSpec:
        """Return which kernel of a program computes with the matrix."""
        axis = self.storage.description.axes[-1]
        offsets, columns = indptr_of(axis), indices_of(axis)
        assert offsets is not None
        assert columns is not None
        variant = Variant(dtype, offsets.dtype, columns.dtype, features)
        return KernelSpec(program, variant, self.stats())

    def arguments(self, program: OperatorProgram, dense: Mapping[str, Array]) -> dict[str, Any]:
        """Return all arguments of a kernel, with these `dense` ones."""
        arrays = self.arrays
        if program.values is None:
            # The kernel of a program that ignores values has no such parameter.
            del arrays[VALUES_PARAMETER]
        return {**arrays, **dense}

    def has_long_rows(self, dtype: str) -> bool:
        """Return whether there are rows whose elements cannot be added one by one in this dtype."""
        is_possible = dtype == "float32" and self.nnz > MAX_SUM
        return is_possible and self.stats().longest_row > MAX_SUM

    def cut_rows(self) -> tuple[CsrMatrix, Array]:
        """Return the matrix with a row for each segment of a row, and the number of the first segment of each
        row. Columns and values are shared."""
        offsets, starts = segment_offsets(self.storage.arrays["indptr"])
        storage = self.storage._replace(
            sizes={**self.storage.sizes, "m": len(offsets) - 1},
            arrays={**self.storage.arrays, "indptr": offsets},
        )
        return CsrMatrix(storage, None), starts


def csr_matrix(matrix: Any) -> CsrMatrix:
    """Return a tensor or a SciPy matrix in CSR: a tensor in another format is converted once, a SciPy matrix
    is converted and checked (`FormatError`).

    A tensor that borrows its arrays is checked as well, because the caller can write to them.
    """
    if isinstance(matrix, SparseTensor):
        tensor = matrix if is_format(matrix.description, "csr") else matrix.tocsr()
        if not tensor.is_borrowed:
            return CsrMatrix(tensor.storage, tensor)
        require_valid_storage(tensor.storage, check=fact_checker(DEFAULT_TARGET))
        return CsrMatrix(tensor.storage, None)
    storage = borrow_scipy(matrix, check=fact_checker(DEFAULT_TARGET))
    return CsrMatrix(storage, None)


def csr_pattern(matrix: Any, *, dtype: str | None) -> CsrMatrix:
    """Return a tensor or a SciPy matrix whose values are ignored in CSR, as `csr_matrix` does, except that
    bools and integers of a SciPy matrix are converted to this dtype (None: float32)."""
    kind = getattr(getattr(matrix, "dtype", None), "kind", None)
    # Only bools and integers are converted, which adjacency matrices have.
    if isinstance(matrix, SparseTensor) or kind not in ("b", "i", "u"):
        return csr_matrix(matrix)
    storage = borrow_scipy(matrix, dtype=dtype or "float32", check=fact_checker(DEFAULT_TARGET))
    return CsrMatrix(storage, None)
