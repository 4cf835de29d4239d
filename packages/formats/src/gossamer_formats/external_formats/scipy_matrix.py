"""The matrices of SciPy in a format: a record with the conversions of their arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gossamer_formats.checks.index_checks import require_valid_indices, require_valid_indptr
from gossamer_formats.external_formats.matrix_checks import (
    matrix_values,
    require_arrays,
    require_values,
    used_slots,
)
from gossamer_formats.format import Adapter
from gossamer_formats.storage import Storage
from gossamer_support.arrays import Array


class ScipyArrays(NamedTuple):
    """The arrays of a matrix, and the sizes that do not follow from them and the shape."""

    arrays: Mapping[str, Array]
    sizes: Mapping[str, int] = {}


class ScipyMatrix(Adapter, frozen=True):
    """The matrices of SciPy whose attribute `format` is the name of a format here.

    `from_scipy` takes a matrix and a dtype or None, and returns the arrays; it copies those that need a
    conversion. `to_scipy` takes the storage of a tensor and returns a SciPy array over its arrays. `check`
    takes a matrix and raises `FormatError` unless the arrays are valid that SciPy's own conversion to CSR
    reads without checks (None: there is no conversion). Operators compute with the matrix as it is if it
    `is_operand`: then `from_scipy` returns all sizes of the description.
    """

    from_scipy: Callable[[Any, str | None], ScipyArrays]
    to_scipy: Callable[[Storage], Any]
    check: Callable[[Any], None] | None = None
    is_operand: bool = False


def scipy_class(name: str) -> Any:
    """Return a class of SciPy. Its stubs have a signature for each number of dimensions, which callers do not
    know."""
    from scipy import sparse

    return getattr(sparse, name)


def compressed_arrays(matrix: Any, dtype: str | None) -> dict[str, Array]:
    """Return the arrays of a SciPy matrix in CSR, CSC or BSR, copied only if they need a conversion."""
    require_arrays(matrix, "indptr", "indices", "data")
    used = slice(used_slots(matrix.indptr, matrix.indices))
    return {
        "indptr": np.ascontiguousarray(matrix.indptr),
        "indices": np.ascontiguousarray(matrix.indices[used]),
        "data": matrix_values(matrix.data[used], dtype),
    }


def required_slots(matrix: Any, *, ndim: int) -> int:
    """Require arrays, and values of this many dimensions, of a SciPy matrix in CSR, CSC or BSR. Return the
    number of slots in use."""
    require_arrays(matrix, "indptr", "indices", "data")
    count = used_slots(matrix.indptr, matrix.indices)
    require_values(matrix, ndim=ndim, count=count)
    return count


def require_positions(matrix: Any, count: int, *, segments: int, length: int) -> None:
    """Check the index arrays of a SciPy matrix in CSR, CSC or BSR."""
    require_valid_indptr(matrix.indptr, segments=segments, total=count)
    require_valid_indices(matrix.indices[:count], length=length, count=count)


def compressed_parts(storage: Storage) -> tuple[Array, Array, Array]:
    """Return the arrays of a compressed format in the order in which SciPy's classes take them."""
    arrays = storage.arrays
    return arrays["data"], arrays["indices"], arrays["indptr"]
