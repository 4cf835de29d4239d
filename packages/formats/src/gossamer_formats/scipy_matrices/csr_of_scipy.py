"""The arrays of SciPy's sparse matrices and arrays, checked and converted to CSR.

SciPy checks the arrays of a matrix only when the matrix is made, and its conversions assume that they are
valid. They may have been written to since, so they are checked here before any conversion.
"""

from __future__ import annotations

from typing import Any

from gossamer_formats.checks.shapes import require_shape
from gossamer_formats.checks.storage_checks import (
    check_indices,
    check_indptr,
    check_storage,
    require_value_dtype,
)
from gossamer_formats.conversion.csr_matrices import csr_storage
from gossamer_formats.memory.available_memory import available_memory
from gossamer_formats.scipy_matrices.layouts import compressed_arrays
from gossamer_formats.scipy_matrices.matrix_checks import (
    require_arrays,
    require_matrix,
    require_values,
    used_slots,
)
from gossamer_formats.storage import Array, Storage
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
    arrays = compressed_arrays(matrix, None)
    return arrays["indptr"], arrays["indices"], arrays["data"]


def unchecked_storage(matrix: Any, dtype: str | None) -> Storage:
    """Return CSR arrays of a SciPy matrix, before their contents are checked."""
    require_matrix(matrix)
    if dtype is not None:
        require_value_dtype(dtype)
    if matrix.format != "csr":
        _require_memory(matrix)
        _check_before_conversion(matrix)
        matrix = _converted(matrix)
    arrays = compressed_arrays(matrix, dtype)
    return csr_storage(require_shape(matrix.shape, rank=2), arrays)


def _converted(matrix: Any) -> Any:
    # A tensor in the matrix's own format could be converted instead, but SciPy is ten times as fast until
    # conversions are compiled.
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
