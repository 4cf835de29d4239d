"""Matrices in CSR whose arrays are those of another package, on any device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from gossamer.operator_calls.operands.csr_matrix import HANDLES, POINTERS, VALUES_PARAMETER
from gossamer.operator_calls.operands.dense_operands import require_shape
from gossamer.operator_calls.operator_kernels import KernelSpec
from gossamer.operator_calls.operator_program import (
    CSR_PARAMETERS,
    OperatorProgram,
    StructureParameters,
    Variant,
)
from gossamer_backend.internal_api import ArrayView, view_of
from gossamer_formats.internal_api import INDEX_DTYPES, NUMPY_DTYPES
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Stats
from gossamer_support.message_texts import either


class CsrArrays(NamedTuple):
    """A sparse matrix in CSR by its arrays, which are on the host or on a device.

    `indptr` has the offsets of the rows, `indices` the columns and `data` the values of the elements. They
    are NumPy's, or export their memory by DLPack or `__cuda_array_interface__`. Operators take such a matrix
    with dense operands on the same device, and a target whose kernels run there. They also take any object
    with these attributes whose arrays are not NumPy's, such as a matrix of CuPy. Each call checks the index
    arrays.

    >>> import numpy as np, gossamer as gs
    >>> indptr, indices = np.array([0, 1, 2], np.int32), np.array([1, 0], np.int32)
    >>> A = gs.CsrArrays((2, 2), indptr, indices, np.array([2.0, 3.0]))
    >>> gs.spmm(A, np.array([[1.0, 10.0], [4.0, 5.0]]))
    array([[ 8., 10.],
           [ 3., 30.]])
    """

    shape: tuple[int, int]
    indptr: Any
    indices: Any
    data: Any


class ArraysMatrix(msgspec.Struct, frozen=True):
    """A matrix in CSR with arrays of any package, whose shapes and dtypes were checked. Kernels check what
    the index arrays contain."""

    shape: tuple[int, int]
    views: dict[str, ArrayView]

    @property
    def dtype(self) -> str:
        return str(self.views[VALUES_PARAMETER].dtype)

    @property
    def value_count(self) -> int:
        return self.views["indices"].size

    @property
    def memory(self) -> tuple[Any, ...]:
        return tuple(view.array for view in self.views.values())

    @property
    def plan_key(self) -> None:
        return None

    @property
    def structure_parameters(self) -> StructureParameters:
        return CSR_PARAMETERS.structure

    @property
    def verified(self) -> tuple[str, ...]:
        return ()

    def kernel_spec(
        self, program: OperatorProgram, *, dtype: str, features: int | None
    ) -> KernelSpec:
        """Return which kernel of a program computes with the matrix."""
        offsets, columns = (str(self.views[name].dtype) for name in ("indptr", "indices"))
        return KernelSpec(program, Variant(dtype, offsets, columns, features), self.stats())

    def stats(self) -> Stats:
        """Return the stats of the matrix that its sizes imply: no row is known to be short, and some may be
        empty. Offsets are not read, since a call would have to wait for the device."""
        rows, columns = self.shape
        nnz = self.value_count
        return Stats(rows, columns, nnz, longest_row=nnz, empty_rows=min(rows, 1))

    def arguments(self, program: OperatorProgram, dense: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments of a kernel, with these `dense` ones."""
        names = [name for name in POINTERS if name != VALUES_PARAMETER or program.values]
        return {**{name: self.views[name].array for name in names}, **dense}


def arrays_matrix(matrix: Any, *, reads_values: bool) -> ArraysMatrix | None:
    """Return the operand for a matrix that is given by arrays of another package; None for any other matrix.

    Raises `ArgumentError` for a wrong shape or dtype of an array (`operand.shape`, `operand.dtype`). The
    dtype of values matters if they are read.
    """
    if not _is_given_by_arrays(matrix):
        return None
    rows, columns = (int(size) for size in matrix.shape)
    views = {
        parameter: view_of(getattr(matrix, attribute), name=attribute)
        for parameter, attribute in zip(POINTERS, HANDLES, strict=True)
    }
    for name in ("indptr", "indices"):
        _require_dtype(name, views[name], expected=tuple(INDEX_DTYPES))
    if reads_values:
        _require_dtype("data", views[VALUES_PARAMETER], expected=NUMPY_DTYPES)
    stored = views["indices"].size
    require_shape("indptr", views["indptr"], shape=(rows + 1,))
    require_shape("indices", views["indices"], shape=(stored,))
    require_shape("data", views[VALUES_PARAMETER], shape=(stored,))
    return ArraysMatrix((rows, columns), views)


def _is_given_by_arrays(matrix: Any) -> bool:
    """Return whether a matrix is a `CsrArrays`, or has its attributes with arrays that are not NumPy's."""
    if isinstance(matrix, CsrArrays):
        return True
    arrays = [getattr(matrix, name, None) for name in ("indptr", "indices", "data")]
    is_csr = getattr(matrix, "format", "csr") == "csr" and hasattr(matrix, "shape")
    return is_csr and not any(array is None or isinstance(array, np.ndarray) for array in arrays)


def _require_dtype(name: str, view: ArrayView, *, expected: tuple[Any, ...]) -> None:
    names = [str(dtype) for dtype in expected]
    if str(view.dtype) not in names:
        raise ArgumentError(
            "operand.dtype",
            f"The array '{name}' of the matrix has the dtype {view.dtype}; expected {either(names)}.",
        )
