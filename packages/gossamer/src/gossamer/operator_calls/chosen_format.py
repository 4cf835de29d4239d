"""A matrix in a format that the model of costs has chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from gossamer_formats import Decomposition, SparseTensor

if TYPE_CHECKING:
    from gossamer_tune import Estimate

Stored: TypeAlias = SparseTensor | Decomposition
"""A matrix in one format, or in parts."""

CHOICE = "gossamer.operator_calls.chosen_format"
"""The name under which a matrix keeps the `FormatChoice` that was made for it."""


def in_format(matrix: SparseTensor, estimate: Estimate) -> Stored:
    """Return a matrix in CSR in the format of an estimate.

    Whole tiles and whole blocks are a part of their own, for which there are schedules; the rows and columns
    after the last one are in CSR. A matrix that stays in CSR becomes a tensor of its own with the same
    arrays, since the given one may have other choices.
    """
    parameters: dict[str, Any] = dict(estimate.parameters)
    match estimate.format:
        case "csr":
            return SparseTensor.of_checked(matrix.storage)
        case "tiled_csr":
            return _in_tiles(matrix, parameters)
        case "hyb":
            from gossamer_formats import decompose

            return decompose(matrix, "hyb", **parameters)
        case name:
            return matrix.asformat(name, **parameters)


def _in_tiles(matrix: SparseTensor, parameters: dict[str, Any]) -> Decomposition:
    from gossamer_formats import decompose
    from gossamer_formats.descriptions.tiled_csr import tiled_csr

    width = parameters["tile_columns"]
    whole = matrix.shape[1] // width * width
    tiles = (tiled_csr(is_whole=True), lambda _, columns: columns < whole, parameters)
    return decompose(matrix, [tiles, "csr"])
