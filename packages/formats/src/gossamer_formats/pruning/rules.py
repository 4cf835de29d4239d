"""The rules of pruning: which nonzeros of a matrix are kept. They use only NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gossamer_formats.pruning.largest import are_largest, ranks_in_groups
from gossamer_formats.pruning.pruning_rule import Nonzeros, PruningRule
from gossamer_support.arrays import Array


def _prune_unstructured(elements: Nonzeros, density: float, _sizes: Mapping[str, int]) -> Array:
    rows, columns = elements.shape
    return are_largest(elements.magnitudes, round(density * rows * columns))


def _blocks(elements: Nonzeros, density: float, sizes: Mapping[str, int]) -> Array:
    height, width = sizes["block_rows"], sizes["block_columns"]
    rows, columns = (-(-elements.shape[0] // height), -(-elements.shape[1] // width))
    # One number for each block, because `unique` of pairs sorts them as records, which is slower.
    numbers = elements.rows // height * columns + elements.columns // width
    blocks, block_numbers = np.unique(numbers, return_inverse=True)
    # In float64, where squares of float32 are finite.
    squares = np.bincount(
        block_numbers, weights=elements.values.astype(np.float64) ** 2, minlength=blocks.size
    )
    kept: Array = are_largest(squares, round(density * rows * columns))[block_numbers]
    return kept


def _prune_groups(elements: Nonzeros, _density: float, sizes: Mapping[str, int]) -> Array:
    groups = _group_numbers(elements.rows, elements.columns, elements.shape[1], sizes["group"])
    kept: Array = ranks_in_groups(groups, elements.magnitudes) < sizes["slots"]
    return kept


def _prune_columns(elements: Nonzeros, _density: float, sizes: Mapping[str, int]) -> Array:
    length = max(elements.shape[1], 1)
    numbers = elements.rows // sizes["rows"] * length + elements.columns
    places, place_numbers = np.unique(numbers, return_inverse=True)
    sums = np.bincount(
        place_numbers, weights=elements.magnitudes.astype(np.float64), minlength=places.size
    )
    groups = _group_numbers(places // length, places % length, length, sizes["group"])
    is_chosen = ranks_in_groups(groups, sums) < sizes["chosen"]
    kept: Array = is_chosen[place_numbers]
    inside = Nonzeros(
        elements.shape, elements.rows[kept], elements.columns[kept], elements.values[kept]
    )
    kept[kept] = _prune_groups(inside, 1.0, sizes)
    return kept


def _group_numbers(rows: Array, columns: Array, length: int, group: int) -> Array:
    """Return the number of each element's group of columns, counted over all rows."""
    numbers: Array = rows * -(-length // group) + columns // group
    return numbers


LARGEST_ELEMENTS = PruningRule(_prune_unstructured, takes_density=True)
LARGEST_BLOCKS = PruningRule(_blocks, takes_density=True)
LARGEST_OF_GROUPS = PruningRule(_prune_groups)
LARGEST_IN_CHOSEN_COLUMNS = PruningRule(_prune_columns)
