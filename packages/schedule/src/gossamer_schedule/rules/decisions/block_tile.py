"""The tile of a product of blocks that is accumulated in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gossamer_heuristics.blocks import (
    BROADCAST_COST,
    MAX_TILE_VECTORS,
    fits_registers,
    load_cost,
    max_sums,
    tile_cost,
)
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.decisions.gather_tiling import LONG_VECTORS
from gossamer_schedule.rules.steps.vector_loops import VectorTiles, lanes_in_words, tiles_holding
from gossamer_support.message_texts import amount

if TYPE_CHECKING:
    from gossamer_schedule.rules.patterns.block_reduction import BlockReduction

UNDIVIDED_ROWS = 8
"""Rows of a tile if the height of a block has only small divisors."""


class RegisterTile(NamedTuple):
    """Rows by the vectors of a tile of `features`. One lane stands for scalar code."""

    rows: int
    features: VectorTiles

    @property
    def text(self) -> str:
        """The tile in words."""
        rows, vectors = amount(self.rows, "row"), amount(self.features.vectors, "vector")
        if self.features.lanes == 1:
            return f"a tile of {rows}"
        lanes = lanes_in_words(self.features.lane_factor)
        return f"a tile of {rows} by {vectors} of {lanes}"


def best_tile(pattern: BlockReduction, machine: Machine) -> RegisterTile:
    """Return the cheapest tile whose accumulators fit the registers.

    The rows of a tile divide the height of a block unless it has only small divisors and the output has an
    axis for the rows of a block. With a known number of features, accumulators take up to three quarters of
    the registers. Otherwise they take half, since masks also need registers.
    """
    budget = _budget(pattern, machine)
    tiles = [
        RegisterTile(rows, _features(pattern, machine, vectors=vectors))
        for rows in _heights(pattern, budget)
        for vectors in range(1, _max_vectors(pattern, machine) + 1)
        if rows * vectors <= budget
        and _has_masks_in_registers(pattern, machine, rows=rows, width=vectors)
    ]
    return min(tiles, key=lambda tile: _cost(tile, pattern, machine=machine))


def _features(pattern: BlockReduction, machine: Machine, *, vectors: int) -> VectorTiles:
    """Return the tiles of features, each of `vectors` vectors: scalable ones if the machine has these, all
    with a mask, since their number is known at run time only."""
    if machine.is_scalable and pattern.feature:
        lanes = machine.unit_lanes(pattern.dtype)
        return VectorTiles(None, vectors, lanes, is_exact=False, is_scalable=True)
    return tiles_holding(pattern.features, vectors=vectors, lanes=_tile_lanes(pattern, machine))


def tile_reason(pattern: BlockReduction, machine: Machine) -> str:
    """Return the reason for `best_tile` in words."""
    height = "an unknown number of" if pattern.height is None else str(pattern.height)
    features = "an unknown number of" if pattern.features is None else str(pattern.features)
    feature_text = f", {features} features" if pattern.feature else ""
    return (
        f"blocks have {height} rows{feature_text}; of the tiles of at most "
        f"{_budget(pattern, machine)} registers it costs least, if a multiply-add costs 1, a broadcast "
        f"{BROADCAST_COST} and a vector of the dense operand {load_cost(machine)}"
    )


def _has_masks_in_registers(
    pattern: BlockReduction, machine: Machine, *, rows: int, width: int
) -> bool:
    """Return whether registers hold the masks of a tile of this many rows and vectors beside its sums. Those
    of an unknown number of features have their share of the budget."""
    if pattern.features is None:
        return True
    vectors = -(-pattern.features // _tile_lanes(pattern, machine))
    return fits_registers(rows, width, vectors=vectors, machine=machine)


def _budget(pattern: BlockReduction, machine: Machine) -> int:
    """Return the maximum number of registers for accumulators."""
    return machine.accumulators if pattern.features is None else max_sums(machine)


def _tile_lanes(pattern: BlockReduction, machine: Machine) -> int:
    """Return the lanes of a register, or fewer if those hold all features."""
    if not pattern.feature:
        return 1
    return machine.lanes(pattern.dtype, holding=pattern.features)


def _heights(pattern: BlockReduction, budget: int) -> tuple[int, ...]:
    """Return the candidates for the rows of a tile."""
    height = pattern.height
    if height is None:
        return (1,)
    divisors = tuple(rows for rows in range(1, min(height, budget) + 1) if height % rows == 0)
    # Rows of a partial tile are masked. If rows are counted over all blocks, no proof uses the mask, and
    # those of two blocks might be the same.
    if pattern.counts_rows or divisors[-1] * 2 >= min(height, UNDIVIDED_ROWS):
        return divisors
    return (UNDIVIDED_ROWS,)


def _max_vectors(pattern: BlockReduction, machine: Machine) -> int:
    """Return the maximum number of vectors of a tile."""
    lanes = _tile_lanes(pattern, machine)
    if machine.is_scalable and pattern.feature:
        # Longer vectors than the least should not be empty, either.
        lanes = machine.lanes(pattern.dtype) * LONG_VECTORS
    if lanes == 1:
        return 1
    if pattern.features is None:
        return MAX_TILE_VECTORS
    return min(MAX_TILE_VECTORS, -(-pattern.features // lanes))


def _cost(tile: RegisterTile, pattern: BlockReduction, *, machine: Machine) -> float:
    """Return the cost of one column of a block with all its features, in multiply-adds."""
    rows, features = tile
    tiles, vectors = features.tiles, features.vectors
    cost = tile_cost(rows, vectors, machine)
    panels = 1 if pattern.height is None else -(-pattern.height // rows)
    return cost * panels / vectors if tiles is None else cost * panels * tiles
