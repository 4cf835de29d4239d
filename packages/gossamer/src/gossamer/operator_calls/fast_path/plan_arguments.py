"""Matrices, in CSR or in a format of a kernel, as arguments for kernels, read at each call.

The arrays of a `SparseTensor` were checked when it was made, so they are read once. Those of a SciPy matrix
are read and checked at each call, by a compiled kernel. Anything unusual is left to `checked_operands`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gossamer.operator_calls.operands.csr_matrix import DTYPE_NUMBERS, csr_of_storage
from gossamer.operator_calls.operands.long_rows import MAX_SUM
from gossamer.operator_calls.operands.stored_matrix import (
    StoredMatrix,
    format_of_storage,
    structure_values,
)
from gossamer_backend import NativeKernel
from gossamer_backend.internal_api import (
    FixedArguments,
    address,
    fixed_arguments,
    function_of_integers,
)
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import MemoKey, is_format
from gossamer_ir.interchange.kernel_abi import OK
from gossamer_ir.interchange.records import size_class

_from_buffer: Callable[[Any], Any] = ctypes.c_char.from_buffer
_addressof = ctypes.addressof
_make_tuple: Callable[..., Any] = tuple.__new__
"""Makes a named tuple in half the time that the class takes."""


class MatrixArguments(NamedTuple):
    """A matrix: the key of plans that fit it, its arguments for them, which are fixed, and the number of its
    values. `arrays` keeps the memory alive."""

    key: object
    fixed: FixedArguments
    arrays: tuple[Array, ...]
    nnz: int


_ARGUMENTS = MemoKey[MatrixArguments | None]("the arguments for plans")


def matrix_arguments(matrix: Any) -> MatrixArguments | None:
    """Return the arguments for a matrix in its usual form: a tensor, or a SciPy matrix in CSR whose arrays
    are contiguous; None for anything else."""
    kind = type(matrix)
    if kind is SparseTensor:
        return _ARGUMENTS.get(matrix, _tensor_arguments)
    return _scipy_arguments(matrix) if kind in _scipy_types or _is_scipy_csr(kind) else None


def converted_arguments(matrix: Any) -> MatrixArguments | None:
    """Return the arguments for a tensor in CSR, if an operator has converted it; None for anything else."""
    converted = matrix.kept_csr if type(matrix) is SparseTensor else None
    return None if converted is None else matrix_arguments(converted)


_scipy_types: set[type[Any]] = set()
"""The types of SciPy's CSR matrices that were met."""


def _is_scipy_csr(kind: type[Any]) -> bool:
    scipy = sys.modules.get("scipy.sparse")  # not imported before there is a matrix
    is_csr = scipy is not None and kind in (scipy.csr_array, scipy.csr_matrix)
    if is_csr:
        _scipy_types.add(kind)
    return is_csr


def _tensor_arguments(tensor: SparseTensor) -> MatrixArguments | None:
    if tensor.is_borrowed:
        # Its arrays must be checked at each call, which `checked_operands` does.
        return None
    # An empty array has no address to pass.
    if tensor.ndim != 2 or not tensor.storage.values.size:
        return None
    matrix = _own_matrix(tensor)
    if matrix is None:
        return None
    arrays, sizes = structure_values(matrix.storage, matrix.stored_format)
    fixed = fixed_arguments(arrays, sizes)
    return MatrixArguments(matrix.plan_key, fixed, tuple(arrays), matrix.value_count)


def _own_matrix(tensor: SparseTensor) -> StoredMatrix | None:
    """Return a tensor in its own format, for which there are plans if operators compute with it; None for one
    in CSR with a row that must be cut."""
    storage = tensor.storage
    if not is_format(tensor.description, "csr"):
        return StoredMatrix(storage, format_of_storage(storage))
    if storage.values.size > MAX_SUM and tensor.stats.longest_row > MAX_SUM:
        return None
    return csr_of_storage(storage, tensor)


def _scipy_arguments(matrix: Any) -> MatrixArguments | None:
    """Return the arguments for a SciPy matrix, whose index arrays a plan checks before it runs.

    This runs at each call, so it is one function: each call of another one takes 0.1 microseconds.
    """
    data, indptr, indices = arrays = matrix.data, matrix.indptr, matrix.indices
    if not (type(indptr) is type(indices) is type(data) is np.ndarray):
        return None
    # One look-up tells whether all three dtypes are native and supported.
    number = DTYPE_NUMBERS.get((data.dtype, indptr.dtype, indices.dtype))
    try:
        rows, columns = matrix.shape
    except ValueError:  # one dimension
        return None
    if number is None or not rows or indptr.shape != (rows + 1,):
        return None
    nnz = indptr.item(rows)
    # A row may be so long that it must be cut if there are as many elements.
    if not 0 < nnz <= MAX_SUM or indices.shape != (nnz,) or data.shape != (nnz,) or indptr.item(0):
        return None
    try:
        starts = (
            _addressof(_from_buffer(data)),
            _addressof(_from_buffer(indptr)),
            _addressof(_from_buffer(indices)),
        )
    except (TypeError, ValueError, BufferError):  # read-only, or not contiguous
        if not (
            indptr.flags.c_contiguous and indices.flags.c_contiguous and data.flags.c_contiguous
        ):
            return None
        starts = (address(data), address(indptr), address(indices))
    at_data, at_indptr, at_indices = starts
    # Addresses that are multiples of 8 are aligned for all dtypes, which saves three calls.
    if (at_indptr | at_indices | at_data) & 7 and not all(array.flags.aligned for array in arrays):
        return None
    check = _checks.get(number) or partial(_first_check, number)
    ends = (at_data + data.nbytes, at_indptr + indptr.nbytes, at_indices + indices.nbytes)
    arguments = _make_tuple(FixedArguments, (starts, (rows, columns, nnz), ends, check))
    key = (number, size_class(rows, columns, nnz))
    result: MatrixArguments = _make_tuple(MatrixArguments, (key, arguments, arrays, nnz))
    return result


_Check: TypeAlias = Callable[[FixedArguments, int], bool]
_checks: dict[int, _Check] = {}
"""The functions that were made by `_check`."""


def _first_check(number: int, arguments: FixedArguments, workspace: int) -> bool:
    """Compile the check of a number and run it. A call without a plan does not come here, as the check takes
    as long to compile as its kernel."""
    check = _check(number)
    return check is not None and check(arguments, workspace)


@cache
def _check(number: int) -> _Check | None:
    """Return a function for a number of `DTYPE_NUMBERS`. It checks that the offsets never decrease, and that
    the columns are within the matrix. None if it cannot be compiled for the default target."""
    from gossamer.operator_calls.fast_path.index_checks import compile_index_check

    _, indptr, indices = next(dtypes for dtypes, key in DTYPE_NUMBERS.items() if key == number)
    kernel = compile_index_check(indptr.name, indices.name)
    if kernel is None:
        return None
    assert isinstance(kernel, NativeKernel), "SciPy's arrays are in the memory of this process"
    check = _checks[number] = partial(_run_check, function_of_integers(kernel))
    return check


def _run_check(function: Callable[..., int], arguments: FixedArguments, workspace: int) -> bool:
    """Return whether the machine code of a check finds the offsets and the columns valid."""
    (_, offsets, columns), (rows, width, nnz), _, _ = arguments
    return function(offsets, rows + 1, columns, nnz, 0, width - 1, workspace) == OK
