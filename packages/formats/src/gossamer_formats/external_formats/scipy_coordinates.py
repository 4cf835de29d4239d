"""SciPy's matrices in COO, of any number of dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_formats.checks.index_checks import require_valid_indices
from gossamer_formats.external_formats.matrix_checks import matrix_values, require_arrays
from gossamer_formats.external_formats.scipy_matrix import ScipyArrays, ScipyMatrix, scipy_class
from gossamer_formats.storage import Storage
from gossamer_ir.errors import FormatError


def _arrays(matrix: Any, dtype: str | None) -> ScipyArrays:
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
    return ScipyArrays(arrays)


def _require_valid(matrix: Any) -> None:
    rows, columns = matrix.shape
    require_arrays(matrix, "row", "col", "data")
    for name, length, coordinates in (("row", rows, matrix.row), ("col", columns, matrix.col)):
        require_valid_indices(coordinates, length=length, count=matrix.data.size, name=name)


def _coo_array(storage: Storage) -> Any:
    shape, arrays = storage.shape, storage.arrays
    coords = tuple(arrays[f"indices_{number}"] for number in range(len(shape)))
    return scipy_class("coo_array")((arrays["data"], coords), shape=shape)


SCIPY_COO = ScipyMatrix(_arrays, _coo_array, _require_valid)
