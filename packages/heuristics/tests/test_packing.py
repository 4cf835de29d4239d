"""When a dense operand is packed, at both sides of each limit."""

from __future__ import annotations

import pytest

from gossamer_heuristics.operand_copies import row_packing, shared_tile_packing
from gossamer_heuristics.thread_copies import thread_tile_packing
from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine

MACHINE = Machine(private_cache=1 << 20, shared_cache=16 << 20, cores=2)


def stats(columns, uses, *, mean=64.0):
    """A matrix whose columns have so many elements, and whose rows have so many on average."""
    nnz = columns * uses
    rows = max(1, int(nnz / mean))
    return Stats(rows=rows, columns=columns, nnz=nnz, longest_row=int(mean), empty_rows=0)


@pytest.mark.parametrize(
    ("columns", "uses", "obstacle"),
    [
        (8192, 32, None),
        (8192, 31, "few uses"),
        (8193, 32, "large copy"),
        (8193, 31, "few uses"),
        (0, 32, None),
    ],
)
def test_gathered_rows_are_packed_if_half_of_the_private_cache_holds_them(columns, uses, obstacle):
    assert row_packing(64, MACHINE, stats(columns, uses)).obstacle == obstacle


@pytest.mark.parametrize(
    ("columns", "uses", "obstacle"),
    [(4096, 128, None), (4096, 127, "few uses"), (4097, 128, "large copy")],
)
def test_a_tile_of_all_threads_is_packed_if_the_private_cache_holds_it(columns, uses, obstacle):
    packing = shared_tile_packing(256, MACHINE, stats(columns, uses), block_rows=4)
    assert packing.obstacle == obstacle


# Tiles of float32 have 64 features, or 256 bytes of a row.
@pytest.mark.parametrize(
    ("features", "columns", "uses", "mean", "obstacle"),
    [
        (512, 512, 16, 64.0, None),
        (512, 511, 16, 64.0, "small operand"),
        (512, 512, 15, 64.0, "few uses"),
        (512, 1024, 24, 32.0, "small operand"),
        (512, 2048, 24, 32.0, None),
        (512, 2048, 23, 32.0, "few uses"),
        (512, 16384, 24, 64.0, None),
        (512, 16385, 24, 64.0, "large copy"),
        (64, 16384, 24, 64.0, "partial tiles"),
        (500, 16384, 24, 64.0, "partial tiles"),
        (192, 8192, 24, 64.0, "idle cores"),
    ],
)
def test_threads_pack_tiles_of_a_large_operand_that_is_used_often(
    features, columns, uses, mean, obstacle
):
    matrix = stats(columns, uses, mean=mean)
    assert thread_tile_packing(features, "float32", MACHINE, matrix).obstacle == obstacle
