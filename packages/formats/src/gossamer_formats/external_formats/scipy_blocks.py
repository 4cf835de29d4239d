"""SciPy's matrices in BSR."""

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
    required_slots(matrix, ndim=3)
    arrays = compressed_arrays(matrix, dtype)
    rows, columns = matrix.shape
    _, height, width = matrix.data.shape
    arrays["data"] = arrays["data"].reshape(-1)
    blocks = {"blocks": arrays["indices"].size, "block_rows": height, "block_columns": width}
    return ScipyArrays(arrays, {"m": int(rows), "n": int(columns), **blocks})


def _require_valid(matrix: Any) -> None:
    # First, since SciPy takes the size of the blocks from the values.
    count = required_slots(matrix, ndim=3)
    rows, columns = matrix.shape
    height, width = matrix.blocksize
    require_positions(matrix, count, segments=rows // height, length=columns // width)


def _bsr_array(storage: Storage) -> Any:
    data, indices, indptr = compressed_parts(storage)
    sizes = storage.sizes
    blocks = data.reshape(-1, sizes["block_rows"], sizes["block_columns"])
    return scipy_class("bsr_array")((blocks, indices, indptr), shape=storage.shape)


SCIPY_BSR = ScipyMatrix(_arrays, _bsr_array, _require_valid, is_operand=True)
