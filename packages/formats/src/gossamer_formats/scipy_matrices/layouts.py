"""The arrays of SciPy's matrices in the formats that SciPy and this library share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gossamer_formats.checks.storage_checks import require_value_dtype
from gossamer_formats.scipy_matrices.matrix_checks import (
    matrix_values,
    require_arrays,
    require_matrix,
    require_values,
    used_slots,
)
from gossamer_formats.storage import Array
from gossamer_ir.errors import FormatError


class Layout(NamedTuple):
    """A format by name, its arrays, and the sizes that do not follow from them and the shape."""

    format: str
    arrays: Mapping[str, Array]
    sizes: Mapping[str, int] = {}


def layout_of(matrix: Any, dtype: str | None) -> Layout | None:
    """Return the arrays of a SciPy matrix in its own format, copied only if they need a conversion.

    Returns None if there is no such format here (`dok`, `lil`). Contents are not checked.
    """
    require_matrix(matrix, rank=None)
    if dtype is not None:
        require_value_dtype(dtype)
    if matrix.format not in _LAYOUTS:
        return None
    require_matrix(matrix, rank=None if matrix.format == "coo" else 2)
    return _LAYOUTS[matrix.format](matrix, dtype)


def compressed_arrays(matrix: Any, dtype: str | None) -> dict[str, Array]:
    """Return the arrays of a SciPy matrix in CSR, CSC or BSR, copied only if they need a conversion."""
    require_arrays(matrix, "indptr", "indices", "data")
    used = slice(used_slots(matrix.indptr, matrix.indices))
    return {
        "indptr": np.ascontiguousarray(matrix.indptr),
        "indices": np.ascontiguousarray(matrix.indices[used]),
        "data": matrix_values(matrix.data[used], dtype),
    }


def _compressed(matrix: Any, dtype: str | None) -> Layout:
    return Layout(matrix.format, compressed_arrays(matrix, dtype))


def _blocks(matrix: Any, dtype: str | None) -> Layout:
    require_arrays(matrix, "indptr", "indices", "data")
    require_values(matrix, dimensions=3, count=used_slots(matrix.indptr, matrix.indices))
    arrays = compressed_arrays(matrix, dtype)
    _, height, width = matrix.data.shape
    arrays["data"] = arrays["data"].reshape(-1)
    return Layout("bsr", arrays, {"block_rows": height, "block_columns": width})


def _coordinates(matrix: Any, dtype: str | None) -> Layout:
    require_arrays(matrix, "data")
    arrays = {"data": matrix_values(matrix.data, dtype)}
    for number, array in enumerate(matrix.coords):
        if not isinstance(array, np.ndarray):
            raise FormatError(
                "format.kind",
                f"coords[{number}] of the matrix has the type '{type(array).__name__}'; expected a NumPy "
                "array.",
            )
        arrays[f"indices_{number}"] = np.ascontiguousarray(array)
    return Layout("coo", arrays)


def _diagonals(matrix: Any, dtype: str | None) -> Layout:
    require_arrays(matrix, "offsets", "data")
    require_values(matrix, dimensions=2, count=matrix.offsets.size)
    data = matrix_values(matrix.data, dtype)
    count, columns = matrix.offsets.size, matrix.shape[1]
    if data.shape != (count, columns):
        # SciPy's diagonals may be shorter or longer than the matrix is wide; missing slots are zeros.
        whole = np.zeros((count, columns), data.dtype)
        width = min(columns, data.shape[1])
        whole[:, :width] = data[:count, :width]
        data = whole
    return Layout(
        "dia", {"offsets": np.ascontiguousarray(matrix.offsets), "data": data.reshape(-1)}
    )


_LAYOUTS: dict[str, Callable[[Any, str | None], Layout]] = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _blocks,
    "coo": _coordinates,
    "dia": _diagonals,
}
"""The formats that SciPy and this library share."""
