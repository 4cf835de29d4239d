"""Staging in shared memory for tensor cores. `tests/integration/test_staged_blocks.py` runs it."""

from __future__ import annotations

import pytest

from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Grid
from gossamer_schedule.rules.decisions.grids.staged_blocks import BlockStaging, block_staging
from gossamer_schedule.rules.decisions.scalable_vectors.block_product import block_product
from gossamer_testkit.bsr_product import bsr_product

GRID = Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108)


def staging_of(**sizes):
    product = block_product(specialize(bsr_product("float16"), sizes))
    assert product is not None
    return block_staging(product, GRID)


@pytest.mark.parametrize(
    ("height", "width", "features", "tile", "stages"),
    [
        (32, 32, 128, 64, 3),
        (16, 16, 96, 32, 3),
        # Registers leave fewer features to taller blocks, shared memory fewer stages to wider ones.
        (128, 16, 64, 32, 3),
        (64, 80, 64, 64, 2),
    ],
)
def test_a_tile_fits_registers_and_shared_memory(height, width, features, tile, stages):
    staging = staging_of(bh=height, bw=width, feat=features)
    assert staging == BlockStaging(tile, height, width, stages)


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"bh": 32, "bw": 32},
        {"bh": 32, "feat": 32},
        {"bh": 8, "bw": 16, "feat": 32},
        {"bh": 16, "bw": 24, "feat": 32},
        {"bh": 16, "bw": 16, "feat": 40},
        {"bh": 256, "bw": 16, "feat": 40},
        {"bh": 128, "bw": 128, "feat": 64},
    ],
    ids=str,
)
def test_other_sizes_are_not_staged(sizes):
    assert staging_of(**sizes) is None
