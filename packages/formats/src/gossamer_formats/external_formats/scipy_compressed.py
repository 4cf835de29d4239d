"""SciPy's matrices in CSR and CSC."""

from __future__ import annotations

from typing import Any

from gossamer_formats.external_formats.scipy_matrix import (
    ScipyArrays,
    ScipyMatrix,
    compressed_arrays,
    compressed_parts,
    require_positions,
    required_slots,
    scipy_class,
)
from gossamer_formats.storage import Storage


def _arrays(matrix: Any, dtype: str | None) -> ScipyArrays:
    return ScipyArrays(compressed_arrays(matrix, dtype))


def _require_valid_columns(matrix: Any) -> None:
    rows, columns = matrix.shape
    count = required_slots(matrix, ndim=1)
    require_positions(matrix, count, segments=columns, length=rows)


def _csr_array(storage: Storage) -> Any:
    return scipy_class("csr_array")(compressed_parts(storage), shape=storage.shape)


def _csc_array(storage: Storage) -> Any:
    return scipy_class("csc_array")(compressed_parts(storage), shape=storage.shape)


SCIPY_CSR = ScipyMatrix(_arrays, _csr_array)
SCIPY_CSC = ScipyMatrix(_arrays, _csc_array, _require_valid_columns)
