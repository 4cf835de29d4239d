"""SciPy's matrices in DIA."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_formats.external_formats.matrix_checks import (
    matrix_values,
    require_arrays,
    require_values,
)
from gossamer_formats.external_formats.scipy_matrix import ScipyArrays, ScipyMatrix, scipy_class
from gossamer_formats.storage import Storage
from gossamer_ir.errors import FormatError
from gossamer_support.message_texts import amount


def _arrays(matrix: Any, dtype: str | None) -> ScipyArrays:
    require_arrays(matrix, "offsets", "data")
    require_values(matrix, ndim=2, count=matrix.offsets.size)
    data = matrix_values(matrix.data, dtype)
    count, columns = matrix.offsets.size, matrix.shape[1]
    if data.shape != (count, columns):
        # SciPy's diagonals may be shorter or longer than the matrix is wide; missing slots are zeros.
        whole = np.zeros((count, columns), data.dtype)
        width = min(columns, data.shape[1])
        whole[:, :width] = data[:count, :width]
        data = whole
    offsets = np.ascontiguousarray(matrix.offsets)
    return ScipyArrays({"offsets": offsets, "data": data.reshape(-1)})


def _require_valid(matrix: Any) -> None:
    require_arrays(matrix, "offsets", "data")
    require_values(matrix, ndim=2, count=matrix.offsets.size)
    diagonals, offsets = matrix.data, matrix.offsets
    if offsets.ndim != 1 or offsets.dtype.kind != "i" or len(diagonals) != offsets.size:
        raise FormatError(
            "format.length",
            f"offsets has the shape {offsets.shape} and the dtype {offsets.dtype}; expected one integer "
            f"for each of {amount(len(diagonals), 'diagonal')}.",
        )


def _dia_array(storage: Storage) -> Any:
    arrays, sizes = storage.arrays, storage.sizes
    diagonals = arrays["data"].reshape(sizes["diagonals"], sizes["n"])
    return scipy_class("dia_array")((diagonals, arrays["offsets"]), shape=storage.shape)


SCIPY_DIA = ScipyMatrix(_arrays, _dia_array, _require_valid)
