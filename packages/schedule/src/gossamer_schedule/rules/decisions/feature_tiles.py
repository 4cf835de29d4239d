"""The tiles of features that threads update, where rows may repeat."""

from __future__ import annotations

from gossamer_machine.machine import Machine
from gossamer_schedule.rules.decisions.gather_tiling import LONG_VECTORS
from gossamer_schedule.rules.patterns.feature_updates import FeatureUpdates
from gossamer_schedule.rules.steps.vector_loops import VectorTiles, tiles_holding

VECTORS = 2
"""Vectors of a tile. More tiles occupy more threads, but each reads all indices (measured on 2 threads, 64
features in 512 bits: 2 tiles of 2 vectors are 1.5 to 2 times as fast as 4 tiles of 1 vector)."""

MANY_VECTORS = 8
"""Vectors of all features from which tiles are twice as large, since there are enough of them."""


def feature_tiles(pattern: FeatureUpdates, machine: Machine) -> VectorTiles:
    """Return the tiles of features, each of which one thread updates."""
    if machine.is_scalable:
        return _scalable_tiles(pattern, machine)
    lanes = machine.lanes(pattern.dtype, holding=pattern.features)
    if pattern.features is None:
        return tiles_holding(None, vectors=VECTORS, lanes=lanes)
    count = -(-pattern.features // lanes)
    vectors = min(count, VECTORS if count < MANY_VECTORS else 2 * VECTORS)
    return tiles_holding(pattern.features, vectors=vectors, lanes=lanes)


def _scalable_tiles(pattern: FeatureUpdates, machine: Machine) -> VectorTiles:
    """Return tiles of scalable vectors, none of them empty in vectors of `LONG_VECTORS` times the least
    length."""
    lanes = machine.unit_lanes(pattern.dtype)
    vectors = VECTORS
    if pattern.features is not None:
        longest = machine.lanes(pattern.dtype) * LONG_VECTORS
        vectors = min(VECTORS, -(-pattern.features // longest))
    return VectorTiles(None, vectors, lanes, is_exact=False, is_scalable=True)
