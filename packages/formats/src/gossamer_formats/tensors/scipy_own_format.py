"""The arrays of SciPy's matrices in their own formats."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from gossamer_formats.checks.array_checks import require_value_dtype
from gossamer_formats.checks.coordinate_order import without_order
from gossamer_formats.conversion.destination.dtypes import with_dtypes_of
from gossamer_formats.external_formats.matrix_checks import require_matrix
from gossamer_formats.external_formats.scipy_matrix import ScipyArrays, ScipyMatrix
from gossamer_formats.format import MAX_VARIANTS
from gossamer_formats.registry.formats import FORMATS
from gossamer_formats.storage import Storage
from gossamer_ir.nodes import FormatDescription


def scipy_matrix_of(name: Any) -> ScipyMatrix | None:
    """Return the record of SciPy's matrices in the format of a name, or None if there is none.

    >>> scipy_matrix_of("bsr").is_operand, scipy_matrix_of("dok")
    (True, None)
    """
    format = FORMATS.find(name) if isinstance(name, str) else None
    return None if format is None else format.adapter(ScipyMatrix)


def arrays_in_own_format(matrix: Any, dtype: str | None) -> ScipyArrays | None:
    """Return the arrays of a SciPy matrix in its own format, copied only if they need a conversion.

    Returns None if there is no such format here (`dok`, `lil`). Contents are not checked.

    >>> from scipy.sparse import eye_array
    >>> arrays_in_own_format(eye_array(2, format="dia"), None).arrays["offsets"]
    array([0], dtype=int32)
    """
    require_matrix(matrix, ndim=None)
    if dtype is not None:
        require_value_dtype(dtype)
    format = FORMATS.find(matrix.format)
    record = None if format is None else format.adapter(ScipyMatrix)
    if format is None or record is None:
        return None
    require_matrix(matrix, ndim=None if format.is_of_any_ndim else 2)
    return record.from_scipy(matrix, dtype)


def require_convertible(matrix: Any) -> None:
    """Check the arrays that SciPy's conversion to CSR reads without checks."""
    record = scipy_matrix_of(matrix.format)
    if record is not None and record.check is not None:
        record.check(matrix)


def borrow_in_own_format(matrix: Any) -> Storage | None:
    """Return checked arrays of a SciPy matrix in its own format, copied only if they need a conversion; None
    for a matrix in CSR or in a format that operators convert to CSR, and for anything else.

    The result is valid until the matrix is written to, as with `borrow_scipy`. Raises `FormatError`.

    >>> from scipy.sparse import bsr_array, eye_array
    >>> storage = borrow_in_own_format(bsr_array(np.ones((2, 4)), blocksize=(2, 2)))
    >>> storage.description.name, storage.sizes["blocks"]
    ('bsr', 2)
    >>> borrow_in_own_format(eye_array(2, format="coo"))
    """
    name = getattr(matrix, "format", None)
    record = scipy_matrix_of(name)
    if record is None or not record.is_operand:
        return None
    require_matrix(matrix)
    if record.check is not None:
        record.check(matrix)
    # After the check: the sizes are computed from the arrays.
    arrays, sizes = record.from_scipy(matrix, None)
    dtypes = tuple((handle, array.dtype) for handle, array in arrays.items())
    return Storage(_describe(matrix.format, dtypes), sizes, arrays)


# Cached, because operators ask at each call.
@lru_cache(maxsize=MAX_VARIANTS)
def _describe(format_name: str, dtypes: tuple[tuple[str, Any], ...]) -> FormatDescription:
    """Return the description of elements in any order in arrays of these dtypes."""
    arrays = {name: np.empty(0, dtype) for name, dtype in dtypes}
    # Imported late: matrices in CSR are described without it.
    from gossamer_formats.conversion.destination.conversion_destination import describe

    return with_dtypes_of(without_order(describe(format_name, ndim=2)), arrays)
