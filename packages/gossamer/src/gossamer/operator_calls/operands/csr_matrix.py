"""Matrices in CSR: tensors, and SciPy's matrices converted for one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer.compilation.build_kernels import fact_checker
from gossamer.operator_calls.operands.long_rows import MAX_SUM, segment_offsets
from gossamer.operator_calls.operands.stored_matrix import StoredMatrix, handles_and_sizes
from gossamer.operator_calls.operator_kernels import KernelSpec
from gossamer.operator_calls.operator_program import (
    CSR_PARAMETERS,
    OperatorProgram,
    StoredFormat,
    StructureParameters,
    Variant,
)
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_formats import (
    Array,
    SparseTensor,
    Storage,
    borrow_scipy,
    csr,
    require_valid_storage,
    storage_stats,
)
from gossamer_formats.internal_api import INDEX_DTYPES, NUMPY_DTYPES, is_format
from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_ir.interchange.records import Stats, size_class

CSR_FORMAT = StoredFormat(csr(), (), is_whole=True)
"""The format in which scripts are written, but for dtypes and order: programs need no rewriting for it."""

HANDLES, _ = handles_and_sizes(CSR_FORMAT)
"""The arrays of a matrix, as the format describes them."""

POINTERS, SIZES_OF_MATRIX = CSR_PARAMETERS.structure
"""The parameters of kernels for these arrays and for the sizes, in the order of `FixedArguments`."""

VALUES_PARAMETER = POINTERS[0]
"""The parameter for the values of a matrix."""

DTYPE_NUMBERS = {
    dtypes: number
    for number, dtypes in enumerate(
        (values, np.dtype(indptr), np.dtype(indices))
        for indptr in INDEX_DTYPES
        for indices in INDEX_DTYPES
        for values in map(np.dtype, NUMPY_DTYPES)
    )
}
"""A number for each combination of the dtypes of values, offsets and columns."""


class CsrMatrix(StoredMatrix, frozen=True, eq=False):
    """A checked matrix in CSR: a tensor's own arrays, or those of a SciPy matrix for one call. Kernels have
    the parameters of the scripts, and are compiled for the dtypes of the indices; rows may be cut."""

    tensor: SparseTensor | None = None

    @property
    def arrays(self) -> dict[str, Array]:
        """Its arrays by the names of the kernels' parameters."""
        arrays = self.storage.arrays
        return {
            parameter: arrays[handle] for parameter, handle in zip(POINTERS, HANDLES, strict=True)
        }

    @property
    def plan_key(self) -> object | None:
        """Its dtypes, and the class of its sizes: tensors share plans with matrices of SciPy."""
        values, indptr, indices = self.arrays.values()
        number = DTYPE_NUMBERS.get((values.dtype, indptr.dtype, indices.dtype))
        # Only the description tells values of bfloat16 from integers, so that they have no plans.
        if number is None:
            return None
        rows, columns = self.shape
        return number, size_class(rows, columns, self.value_count)

    @property
    def structure_parameters(self) -> StructureParameters:
        return CSR_PARAMETERS.structure

    @property
    def verified(self) -> tuple[str, ...]:
        # Programs that ignore values do not have their parameter.
        return POINTERS[1:]

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
        """Return all arguments of a kernel, with these `dense` ones. The sizes follow from the arrays."""
        arrays = self.arrays
        if program.values is None:
            # The kernel of a program that ignores values has no such parameter.
            del arrays[VALUES_PARAMETER]
        return {**arrays, **dense}

    def has_long_rows(self, dtype: str) -> bool:
        """Return whether there are rows whose elements cannot be added one by one in this dtype."""
        is_possible = dtype == "float32" and self.value_count > MAX_SUM
        return is_possible and self.stats().longest_row > MAX_SUM

    def cut_rows(self) -> tuple[CsrMatrix, Array]:
        """Return the matrix with a row for each segment of a row, and the number of the first segment of each
        row. Columns and values are shared."""
        offsets, starts = segment_offsets(self.storage.arrays["indptr"])
        storage = self.storage._replace(
            sizes={**self.storage.sizes, "m": len(offsets) - 1},
            arrays={**self.storage.arrays, "indptr": offsets},
        )
        return csr_of_storage(storage), starts


def csr_of_storage(storage: Storage, tensor: SparseTensor | None = None) -> CsrMatrix:
    """Return checked arrays in CSR as a matrix; `tensor` keeps the stats of its own arrays."""
    return CsrMatrix(storage, CSR_FORMAT, tensor)


def csr_matrix(matrix: Any) -> CsrMatrix:
    """Return a tensor or a SciPy matrix in CSR: a tensor in another format is converted once, a SciPy matrix
    is converted and checked (`FormatError`).

    A tensor that borrows its arrays is checked as well, because the caller can write to them.
    """
    if isinstance(matrix, SparseTensor):
        tensor = matrix if is_format(matrix.description, "csr") else matrix.tocsr()
        if not tensor.is_borrowed:
            return csr_of_storage(tensor.storage, tensor)
        require_valid_storage(tensor.storage, check=fact_checker(DEFAULT_TARGET))
        return csr_of_storage(tensor.storage)
    storage = borrow_scipy(matrix, check=fact_checker(DEFAULT_TARGET))
    return csr_of_storage(storage)


def csr_pattern(matrix: Any, *, dtype: str | None) -> CsrMatrix:
    """Return a tensor or a SciPy matrix whose values are ignored in CSR, as `csr_matrix` does, except that
    bools and integers of a SciPy matrix are converted to this dtype (None: float32)."""
    kind = getattr(getattr(matrix, "dtype", None), "kind", None)
    # Only bools and integers are converted, which adjacency matrices have.
    if isinstance(matrix, SparseTensor) or kind not in ("b", "i", "u"):
        return csr_matrix(matrix)
    storage = borrow_scipy(matrix, dtype=dtype or "float32", check=fact_checker(DEFAULT_TARGET))
    return csr_of_storage(storage)
