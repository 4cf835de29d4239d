"""The cost of blocks (format `bsr`) times a dense matrix."""

from __future__ import annotations

from gossamer_heuristics.blocks import block_tile
from gossamer_heuristics.operand_copies import shared_tile_packing
from gossamer_tune.model.csr_times_dense import RESULT_CYCLES
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import (
    CROSSED_CYCLES,
    gather_cycles,
    pack_cycles,
    page_cycles,
)
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties, scheduled_stats

MIN_FILL = 0.3
"""Blocks with less elements than this fraction of their slots are not considered."""

SLOT_CYCLES = PerCpu(0.15, 0.2, 0.3)
"""Cycles for the multiply-add of a slot and a vector in registers.

Fitted, as the two costs below, to all matrices of the benchmark in blocks of 2 to 16, with 32 to 512 features
on one thread and on two. The ratio of the times of blocks and of CSR has a mean error of 12 percent on
Emerald Rapids, and of 16 percent on Zen 4."""

BROADCAST_CYCLES = PerCpu(0.9, 1.4, 0.4)
"""Cycles to broadcast a slot for a tile. (On Zen 4, 0.2 for a slot and 1.4 for its broadcast have the same
mean error as 0.3 and 1.1, but with these, blocks of 8 in tiles of 2 vectors are expected to be faster than
blocks of 4 in tiles of 4, which are 1.1 times as fast. On Zen 3, a multiply-add of 256 bits takes 0.6 to 1.0
cycles in full blocks of 2 to 16, and 0.9 to 1.8 in CSR, with 32 to 512 features.)"""

TILE_CYCLES = PerCpu(80.0, 60.0)
"""Cycles for a tile besides its blocks and its results: its loop ends, and the next one begins with other
rows of the operand."""

CONVERSION_CYCLES = 120.0
"""Cycles for a slot that is converted."""


def blocks_times_dense(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for square blocks that are filled well enough and divide the matrix."""
    if workload.columns == 1:
        return ()
    return tuple(
        _estimate(matrix, workload, size, fill)
        for size, fill in matrix.block_fill.items()
        if fill >= MIN_FILL and not matrix.rows % size and not matrix.columns % size
    )


def _estimate(matrix: MatrixProperties, workload: Workload, size: int, fill: float) -> Estimate:
    # Slots that are filled up with zeros are multiplied like others.
    slots = matrix.nnz / fill
    machine = workload.machine
    rows, tiles = block_tile(size, workload.vectors, machine)
    row_bytes, launches, copied = workload.row_bytes, 1, 0
    if _is_packed(matrix, workload, tiles=tiles, rows=rows):
        row_bytes, launches, copied = (
            row_bytes // tiles,
            2 * tiles,
            matrix.columns * workload.vectors,
        )
    # A vector of the operand is loaded once for all rows of a tile, some of which only fill the block.
    elements = rows * fill
    # Rows of a copy are aligned; those of the operand are not.
    beside = 0.0 if copied else CROSSED_CYCLES.on(machine)
    load = gather_cycles(matrix, row_bytes, machine, elements=elements, beside=beside) / rows
    once = BROADCAST_CYCLES.on(machine)
    once += page_cycles(matrix, row_bytes, machine, elements=elements) / rows
    cycles = slots * (workload.vectors * (SLOT_CYCLES.on(machine) + load) + tiles * once)
    cycles += matrix.rows * (
        tiles * TILE_CYCLES.on(machine) / rows + workload.vectors * RESULT_CYCLES.on(machine)
    )
    cycles += copied * pack_cycles(matrix, workload)
    cycles = on_threads(cycles, workload, launches=launches, shared_vectors=copied)
    reason = f"blocks of {size} by {size} are filled to {fill:.0%}"
    parameters = {"block_rows": size, "block_columns": size}
    return Estimate(
        "bsr", parameters, cycles, slots * CONVERSION_CYCLES, reason, adds_zeros=fill < 1
    )


def _is_packed(matrix: MatrixProperties, workload: Workload, *, tiles: int, rows: int) -> bool:
    """Return whether tiles of features are packed, as the default schedule decides."""
    stats, tile_bytes = scheduled_stats(matrix), workload.row_bytes // tiles
    packing = shared_tile_packing(tile_bytes, workload.machine, stats, block_rows=rows)
    return tiles > 1 and packing.is_profitable
