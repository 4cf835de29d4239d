"""The arrays of SciPy's sparse matrices and arrays, checked and converted to CSR.

SciPy checks the arrays of a matrix only when the matrix is made, and its conversions assume that they are
valid. They may have been written to since, so they are checked here before any conversion.
"""

from __future__ import annotations

from typing import Any

from gossamer_formats.checks.array_checks import require_value_dtype
from gossamer_formats.checks.shapes import required_shape
from gossamer_formats.checks.storage_checks import require_valid_storage
from gossamer_formats.conversion.by_numpy.csr_matrices import csr_storage
from gossamer_formats.external_formats.matrix_checks import require_matrix
from gossamer_formats.external_formats.scipy_matrix import compressed_arrays
from gossamer_formats.storage import Storage
from gossamer_formats.tensors.scipy_own_format import require_convertible
from gossamer_ir.errors import FormatError
from gossamer_ir.facts.index_arrays import FactChecker


def borrow_scipy(
    matrix: Any, *, dtype: str | None = None, check: FactChecker | None = None
) -> Storage:
    """Return checked CSR arrays of a SciPy matrix, copied only if they need a conversion.

    The result is valid until the matrix is written to, by any thread. `check` is that of
    `require_valid_storage`.

    >>> from scipy.sparse import csr_array
    >>> matrix = csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> storage = borrow_scipy(matrix)
    >>> storage.shape, storage.arrays["indices"]
    ((2, 2), array([1], dtype=int32))
    >>> np.shares_memory(storage.arrays["data"], matrix.data)
    True
    """
    storage = unchecked_storage(matrix, dtype)
    require_valid_storage(storage, check=check)
    return storage


def unchecked_storage(matrix: Any, dtype: str | None) -> Storage:
    """Return CSR arrays of a SciPy matrix, before their contents are checked."""
    require_matrix(matrix)
    if dtype is not None:
        require_value_dtype(dtype)
    if matrix.format != "csr":
        _require_memory(matrix)
        require_convertible(matrix)
        matrix = _convert_to_csr(matrix)
    arrays = compressed_arrays(matrix, dtype)
    return csr_storage(required_shape(matrix.shape, ndim=2), arrays)


def _convert_to_csr(matrix: Any) -> Any:
    # A tensor in the matrix's own format could be converted instead, but SciPy is ten times as fast until
    # conversions are compiled.
    try:
        return matrix.tocsr()
    except (ValueError, TypeError, IndexError) as error:
        raise FormatError(
            "format.conversion", f"The {matrix.format} matrix cannot be converted to CSR: {error}."
        ) from error


def _require_memory(matrix: Any) -> None:
    # Imported late: matrices in CSR have a row pointer.
    from gossamer_formats.memory.available_memory import fits_in_memory

    rows = matrix.shape[0]
    if not fits_in_memory(8 * (rows + 1)):
        raise FormatError(
            "format.memory",
            f"The row pointer of a matrix with {rows} rows does not fit in memory.",
            hint="Leave out empty rows.",
        )
