"""Tiles of scalable vectors, whose number follows from the length of vectors."""

from __future__ import annotations

import pytest

from gossamer_machine import Machine
from gossamer_schedule.rules.decisions.gather_tiling import tiles_of

SCALABLE = Machine(min_vector_bits=128, is_scalable=True)


@pytest.mark.parametrize(
    ("features", "dtype", "vectors", "factor"),
    [
        (128, "float32", 4, "4 * T.vscale()"),
        (1000, "float32", 4, "4 * T.vscale()"),
        (112, "float32", 7, "4 * T.vscale()"),
        (16, "float32", 1, "4 * T.vscale()"),
        (17, "float32", 2, "4 * T.vscale()"),
        (None, "float32", 4, "4 * T.vscale()"),
        (128, "float64", 4, "2 * T.vscale()"),
        (512, "float16", 4, "8 * T.vscale()"),
        (None, "int8", 2, "16 * T.vscale()"),
    ],
)
def test_tiles_of_scalable_vectors(features, dtype, vectors, factor):
    flags = {"is_aligned": False, "is_prefetched": False}
    tiles, limit = tiles_of(features, dtype, machine=SCALABLE, **flags)
    assert (tiles.tiles, tiles.vectors, tiles.lane_factor) == (None, vectors, factor)
    assert "predicate register" in limit


def test_registers_limit_the_vectors_of_a_tile():
    few = Machine(min_vector_bits=128, is_scalable=True, vector_registers=8)
    tiles, _ = tiles_of(128, "float32", machine=few, is_aligned=False, is_prefetched=False)
    assert tiles.vectors == 4
