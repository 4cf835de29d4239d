"""How large a tile of an output should be that is accumulated in registers, by a cost model."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Target
from gossamer_schedule.rules.cost.machine import accumulators_of, lanes_of
from gossamer_schedule.rules.recognise.block_reduction import BlockReduction

VECTORS = 4
"""Vectors of a tile at most: more share their broadcasts among too few rows."""

ODD_ROWS = 8
"""Rows of a tile where the height of a block has no divisors to speak of."""

LOAD_COST, BROADCAST_COST = 6, 1
"""What a vector of the dense operand and an element of a block cost, in multiply-adds: the first
comes from the second-level cache. Fitted to measured tiles of blocks of 16."""

IN_FLIGHT = 8
"""Multiply-adds that must be independent to hide their latency: four cycles, two units."""


class Tile(NamedTuple):
    """Rows, and vectors of so many lanes; one lane: no vectors at all."""

    rows: int
    vectors: int
    lanes: int


def best_tile(pattern: BlockReduction, target: Target) -> Tile:
    """The cheapest tile whose accumulators fit the registers.

    Rows divide the height of a block where that leaves a choice. A known number of features may
    take three quarters of the registers; masks of an unknown one need some as well.
    """
    lanes, budget = _lanes(pattern, target), _budget(pattern, target)
    tiles = [
        Tile(rows, vectors, lanes)
        for rows in _heights(pattern.height, budget)
        for vectors in range(1, _most_vectors(pattern, lanes) + 1)
        if rows * vectors <= budget
    ]
    return min(tiles, key=lambda tile: _cost(tile, pattern))


def tile_reason(pattern: BlockReduction, target: Target) -> str:
    """Why `best_tile` is the best one, in words."""
    height = "an unknown number of" if pattern.height is None else str(pattern.height)
    features = "an unknown number of" if pattern.features is None else str(pattern.features)
    of_features = f", {features} features" if pattern.feature else ""
    return (
        f"blocks have {height} rows{of_features}; of the tiles of at most "
        f"{_budget(pattern, target)} registers it costs least, where a multiply-add is 1, a broadcast "
        f"{BROADCAST_COST} and a vector of the dense operand {LOAD_COST}"
    )


def _budget(pattern: BlockReduction, target: Target) -> int:
    """Registers that may accumulate."""
    half = accumulators_of(target)
    return half if pattern.features is None else half + half // 2


def _lanes(pattern: BlockReduction, target: Target) -> int:
    """As many as a register has, or as few as hold all features."""
    if not pattern.feature:
        return 1
    lanes = lanes_of(target, pattern.dtype)
    while pattern.features is not None and lanes // 2 >= pattern.features:
        lanes //= 2
    return lanes


def _heights(height: int | None, budget: int) -> tuple[int, ...]:
    if height is None:
        return (1,)
    divisors = tuple(rows for rows in range(1, min(height, budget) + 1) if height % rows == 0)
    return divisors if divisors[-1] * 2 >= min(height, ODD_ROWS) else (ODD_ROWS,)


def _most_vectors(pattern: BlockReduction, lanes: int) -> int:
    if lanes == 1:
        return 1
    return VECTORS if pattern.features is None else min(VECTORS, -(-pattern.features // lanes))


def _cost(tile: Tile, pattern: BlockReduction) -> float:
    """Multiply-adds for one column of a block, with what loads and broadcasts cost."""
    rows, vectors, lanes = tile
    each = max(rows * vectors, IN_FLIGHT) + BROADCAST_COST * rows + LOAD_COST * vectors
    panels = 1 if pattern.height is None else -(-pattern.height // rows)
    if pattern.features is None:
        return each * panels / vectors
    return each * panels * -(-pattern.features // (vectors * lanes))
