"""Checks of the attributes of SciPy's matrices, to which any object can be assigned."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_formats.value_dtypes import SCIPY_DTYPES, converted_values
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount, either


def require_matrix(matrix: Any, *, ndim: int | None = 2) -> None:
    """Raise a `FormatError` unless it is a SciPy matrix or array, with `ndim` dimensions unless that is
    None."""
    from scipy.sparse import issparse

    is_sparse: bool = issparse(matrix)
    if not is_sparse:
        raise FormatError(
            "format.kind",
            f"The matrix has the type '{type(matrix).__name__}'; expected a SparseTensor or a SciPy "
            "sparse matrix.",
            hint="Convert a dense array with scipy.sparse.csr_array(array).",
        )
    if ndim not in (None, matrix.ndim):
        raise FormatError(
            "format.dimensions",
            f"The matrix has {amount(matrix.ndim, 'dimension')}; expected {ndim}.",
        )


def require_arrays(matrix: Any, *names: str) -> None:
    """Require NumPy arrays: SciPy allows any object to be assigned to these attributes."""
    for name in names:
        array = getattr(matrix, name)
        if not isinstance(array, np.ndarray):
            raise FormatError(
                "format.kind",
                f"{name} of the matrix has the type '{type(array).__name__}'; expected a NumPy array.",
            )


def require_values(matrix: Any, *, ndim: int, count: int) -> None:
    """Require at least `count` values, diagonals or blocks, as the index arrays declare; blocks must
    not be empty."""
    shape = matrix.data.shape
    if len(shape) != ndim or shape[0] < count or (ndim == 3 and 0 in shape[1:]):
        raise FormatError(
            "format.length",
            f"data of the {matrix.format} matrix has the shape {shape}; expected "
            f"{amount(ndim, 'dimension')}, the first with at least {amount(count, 'element')}.",
        )


def matrix_values(values: Array, dtype: str | None) -> Array:
    """Return the values as a contiguous array, converted if a dtype is given; raises `FormatError`."""
    dtype_of_values = values.dtype
    native = dtype_of_values.newbyteorder("=")
    if dtype is None and native.name not in SCIPY_DTYPES:
        raise FormatError(
            "format.dtype",
            f"The matrix has values of dtype {dtype_of_values}; expected {either(SCIPY_DTYPES)}.",
            hint="Convert it with matrix.astype('float32').",
        )
    if dtype_of_values.kind not in "fiub":
        raise FormatError(
            "format.dtype",
            f"The matrix has values of dtype {dtype_of_values}; expected real numbers.",
        )
    if dtype in (None, native.name):
        return np.ascontiguousarray(values, dtype=native)
    # Bools are the numbers 0 and 1.
    exact = values.astype(np.uint8 if native.kind == "b" else native)
    return np.ascontiguousarray(converted_values(exact, exact.dtype.name, dtype))


def used_slots(indptr: Array, indices: Array) -> int:
    """Return the number of slots that hold nonzeros. SciPy's matrices may have unused slots at the end."""
    is_plain = indptr.ndim == 1 and indptr.size and indptr.dtype.kind == "i"
    last = int(indptr[-1]) if is_plain else -1
    # An invalid last offset is left to the check of the row pointer, which reports it.
    return last if 0 <= last <= indices.size else indices.size
