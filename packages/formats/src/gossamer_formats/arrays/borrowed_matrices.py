"""The arrays of SciPy's sparse matrices and arrays, checked and converted to CSR.

SciPy checks the arrays of a matrix only when the matrix is made, and its conversions assume that they are
valid. They may have been written to since, so they are checked here before any conversion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_formats.arrays.available_memory import available_memory
from gossamer_formats.arrays.csr_arrays import csr_storage, require_shape
from gossamer_formats.checks.storage_checks import (
    VALUE_DTYPES,
    check_indices,
    check_indptr,
    check_storage,
    require_value_dtype,
)
from gossamer_formats.storage import Array, Storage, native_name
from gossamer_ir.errors import FormatError
from gossamer_ir.support.counted import counted
from gossamer_ir.support.index_arrays import FactChecker

# The row pointer of so many rows takes 8 MB, which every machine has that runs NumPy.
_FEW_ROWS = 1 << 20


def borrow_scipy(
    matrix: Any, *, dtype: str | None = None, check: FactChecker | None = None
) -> Storage:
    """Return checked CSR arrays of a SciPy matrix, copied only if they need a conversion.

    The result is valid until the matrix is written to, by any thread. `check` is that of `check_storage`.

    >>> from scipy.sparse import csr_array
    >>> matrix = csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> storage = borrow_scipy(matrix)
    >>> storage.shape, storage.arrays["indices"]
    ((2, 2), array([1], dtype=int32))
    >>> np.shares_memory(storage.arrays["data"], matrix.data)
    True
    """
    storage = unchecked_storage(matrix, dtype)
    check_storage(storage, check=check)
    return storage


def borrow_blocks(matrix: Any) -> tuple[Array, Array, Array]:
    """Return row pointer, block columns and values (blocks by height by width) of a SciPy BSR matrix.

    The arrays are checked, and copied only if they are not contiguous. They are valid until the matrix is
    written to, as with `borrow_scipy`.

    >>> from scipy.sparse import bsr_array
    >>> indptr, indices, data = borrow_blocks(bsr_array(np.ones((2, 4)), blocksize=(2, 2)))
    >>> indptr, indices, data.shape
    (array([0, 2], dtype=int32), array([0, 1], dtype=int32), (2, 2, 2))
    """
    require_matrix(matrix)
    _check_before_conversion(matrix)
    used = slice(used_slots(matrix.indptr, matrix.indices))
    return (
        np.ascontiguousarray(matrix.indptr),
        np.ascontiguousarray(matrix.indices[used]),
        matrix_values(matrix.data[used], None),
    )


def unchecked_storage(matrix: Any, dtype: str | None) -> Storage:
    """Return CSR arrays of a SciPy matrix, before their contents are checked."""
    require_matrix(matrix)
    if dtype is not None:
        require_value_dtype(dtype)
    if matrix.format != "csr":
        _require_memory(matrix)
        _check_before_conversion(matrix)
        matrix = _converted(matrix)
    require_arrays(matrix, "indptr", "indices", "data")
    used = slice(used_slots(matrix.indptr, matrix.indices))
    arrays = {
        "indptr": np.ascontiguousarray(matrix.indptr),
        "indices": np.ascontiguousarray(matrix.indices[used]),
        "data": matrix_values(matrix.data[used], dtype),
    }
    return csr_storage(require_shape(matrix.shape, rank=2), arrays)


def require_matrix(matrix: Any, *, rank: int | None = 2) -> None:
    """Raise a `FormatError` unless it is a SciPy matrix or array, with `rank` dimensions unless that is
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
    if rank not in (None, matrix.ndim):
        raise FormatError(
            "format.dimensions",
            f"The matrix has {counted(matrix.ndim, 'dimension')}; expected {rank}.",
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


def _converted(matrix: Any) -> Any:
    try:
        return matrix.tocsr()
    except (ValueError, TypeError, IndexError) as error:
        raise FormatError(
            "format.conversion", f"The {matrix.format} matrix cannot be converted to CSR: {error}."
        ) from error


def _require_memory(matrix: Any) -> None:
    rows = matrix.shape[0]
    # The available memory is in a dozen files of the system; a small row pointer is not worth reading them.
    if rows > _FEW_ROWS and 8 * (rows + 1) > available_memory():
        raise FormatError(
            "format.memory",
            f"The row pointer of a matrix with {rows} rows does not fit in memory.",
            hint="Leave out empty rows.",
        )


def matrix_values(values: Array, dtype: str | None) -> Array:
    """Return the values as a contiguous array, converted if a dtype is given; raises `FormatError`."""
    dtype_of_values = values.dtype
    if dtype is None and native_name(dtype_of_values) not in VALUE_DTYPES:
        raise FormatError(
            "format.dtype",
            f"The matrix has values of dtype {dtype_of_values}; expected {' or '.join(VALUE_DTYPES)}.",
            hint="Convert it with matrix.astype('float32').",
        )
    if dtype_of_values.kind not in "fiub":
        raise FormatError(
            "format.dtype",
            f"The matrix has values of dtype {dtype_of_values}; expected real numbers.",
        )
    # A float64 that is too large for float32 becomes infinite, as in NumPy's own conversion.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=dtype or dtype_of_values.newbyteorder("="))


def _check_before_conversion(matrix: Any) -> None:
    """Check the arrays that SciPy's conversion to CSR reads without checks."""
    rows, columns = matrix.shape
    if matrix.format == "coo":
        require_arrays(matrix, "row", "col", "data")
        for name, length, coordinates in (("row", rows, matrix.row), ("col", columns, matrix.col)):
            check_indices(coordinates, length=length, count=matrix.data.size, name=name)
    elif matrix.format in ("csc", "bsr"):
        require_arrays(matrix, "indptr", "indices", "data")
        count = used_slots(matrix.indptr, matrix.indices)
        require_values(matrix, dimensions=1 if matrix.format == "csc" else 3, count=count)
        block = matrix.blocksize if matrix.format == "bsr" else (1, 1)
        outer, inner = (columns, rows) if matrix.format == "csc" else (rows, columns)
        check_indptr(matrix.indptr, segments=outer // block[0], total=count)
        check_indices(matrix.indices[:count], length=inner // block[1], count=count)
    elif matrix.format == "dia":
        require_arrays(matrix, "offsets", "data")
        require_values(matrix, dimensions=2, count=matrix.offsets.size)
        _require_no_more(matrix.data, matrix.offsets)


def _require_no_more(diagonals: Array, offsets: Array) -> None:
    if offsets.ndim != 1 or offsets.dtype.kind != "i" or len(diagonals) != offsets.size:
        raise FormatError(
            "format.length",
            f"offsets has the shape {offsets.shape} and the dtype {offsets.dtype}; expected one integer "
            f"for each of {counted(len(diagonals), 'diagonal')}.",
        )


def require_values(matrix: Any, *, dimensions: int, count: int) -> None:
    """Require at least `count` values, diagonals or blocks, as the index arrays declare; blocks must
    not be empty."""
    shape = matrix.data.shape
    if len(shape) != dimensions or shape[0] < count or (dimensions == 3 and 0 in shape[1:]):
        raise FormatError(
            "format.length",
            f"data of the {matrix.format} matrix has the shape {shape}; expected "
            f"{counted(dimensions, 'dimension')}, the first with at least {counted(count, 'element')}.",
        )


def used_slots(indptr: Array, indices: Array) -> int:
    """Return the number of slots that hold nonzeros. SciPy's matrices may have unused slots at the end."""
    is_plain = indptr.ndim == 1 and indptr.size and indptr.dtype.kind == "i"
    last = int(indptr[-1]) if is_plain else -1
    # An invalid last offset is left to the check of the row pointer, which reports it.
    return last if 0 <= last <= indices.size else indices.size
