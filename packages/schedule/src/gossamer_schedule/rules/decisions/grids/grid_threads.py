"""Threads of a grid for the elements of a result with rows and features."""

from __future__ import annotations

from gossamer_ir.nodes import ThreadTag
from gossamer_machine import Grid
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

BLOCK_WARPS = 4
"""The warps of a block: enough blocks fit a multiprocessor to fill it, and small grids have many blocks."""


def block_threads(grid: Grid) -> int:
    """Return the threads of a block."""
    return min(grid.block_threads, BLOCK_WARPS * grid.warp)


def run_rows_and_features(
    trace: TraceBuilder, row: str, *, feature: str, features: int | None, grid: Grid
) -> None:
    """Run features on the threads of a warp, and as many rows as fill a block. The loop over features is
    directly inside of that over rows; `features` is their number if it is constant."""
    lanes = feature_threads(features, grid)
    blocks, rows = trace.split(row, factors=(None, block_threads(grid) // lanes))
    tiles, lane = trace.split(feature, factors=(None, lanes))
    trace.reorder(blocks, tiles, rows, lane)
    bindings: tuple[tuple[str, ThreadTag], ...] = (
        (blocks, "blockIdx.x"),
        (tiles, "blockIdx.y"),
        (rows, "threadIdx.y"),
        (lane, "threadIdx.x"),
    )
    for loop, thread in bindings:
        trace.record.bind(loop=loop, thread=thread)
    trace.decide(
        f"{lanes} features on adjacent threads, {block_threads(grid) // lanes} rows in a block",
        "threads of a warp read adjacent elements of a row of the dense operand",
    )


def feature_threads(features: int | None, grid: Grid) -> int:
    """Return the threads for features: those of a warp, or fewer if half of them are enough."""
    lanes = grid.warp
    while features is not None and lanes // 2 >= features:
        lanes //= 2
    return lanes
