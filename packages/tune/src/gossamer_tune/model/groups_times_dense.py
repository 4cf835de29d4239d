"""The cost of groups of several neighboring rows (format `row_groups`) times a dense matrix.

A group stores each column of its rows once, with a slot for each row, zero where a row has no element. For
each column, a tile of the row of the dense operand is loaded once and multiplied by all slots, into sums in
registers. So groups load less than CSR if rows have columns in common, and multiply more if slots are filled
up. This pays where loads take long, from the second level of the caches on or across cache lines. It
hardly ever does where rows of the operand are in the first level.
"""

from __future__ import annotations

from gossamer_heuristics.gathered_rows import row_loads
from gossamer_heuristics.summed_tiles import max_group_vectors, number_of_tiles
from gossamer_machine.machine import Machine
from gossamer_tune.model.csr_times_dense import RESULT_CYCLES
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import (
    CROSSED_CYCLES,
    PREFETCH_CYCLES,
    gather_cycles,
    page_cycles,
)
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties, scheduled_stats

MIN_FILL = 0.5
"""Groups with fewer elements than this fraction of their slots are not considered."""

MIN_VECTORS = 2
"""Minimum number of vectors of a row of the operand. Groups of rows of one vector were not measured."""

GROUP_SLOT_CYCLES, COLUMN_CYCLES = 0.6, 2.5
"""Cycles for the multiply-add of a slot and a vector in registers, and for a column of a group in a tile: its
index, the broadcasts of its slots, and the masks of aligned vectors.

Measured on Emerald Rapids with matrices of equal rows in groups of 1 to 4, whose operand of 40 rows is in the
first-level cache: a tile of 3 vectors takes 0.58 ns and 0.16 ns for each of its 3 to 12 multiply-adds, one of
5 vectors 0.9 and 0.17; a vector of CSR, which is 1 cycle here, takes 0.26 ns."""

EXPOSED_FRACTION = 0.45
"""Fraction of the shorter of loads and multiply-adds that the other does not hide."""

GROUP_TILE_CYCLES = 25.0
"""Cycles for a tile of a group besides its columns and its results, most of them for the mispredicted end of
its loop.

Fitted, as `EXPOSED_FRACTION`, to 14 matrices with 32 to 512 features on one thread: the ratio of the times of
groups and of CSR has a mean error of 15 percent. Groups are 8 percent faster than expected on average, most
of all with pruned weights and dense blocks, which other formats suit better. Those that are chosen (4
matrices, in both precisions) are 1.04 to 1.77 times as fast as CSR, and 0.91 to 1 times as fast as those of
the best height. On Zen 3 the same costs were found to fit."""

CONVERSION_CYCLES = 65.0
"""Cycles for a slot that is converted (measured: 14 to 27 nanoseconds)."""


def groups_times_dense(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for groups of several rows that are filled well enough; none where they were not
    measured: on CPUs like Zen 4."""
    if workload.vectors < MIN_VECTORS or not _was_measured(workload.machine):
        return ()
    return tuple(
        _estimate(matrix, workload, height, fill)
        for height, fill in matrix.group_fill.items()
        if fill >= MIN_FILL
    )


def _was_measured(machine: Machine) -> bool:
    return machine.gathers == "fast" or not machine.has_mask_registers


def _estimate(matrix: MatrixProperties, workload: Workload, height: int, fill: float) -> Estimate:
    cycles = on_threads(_cycles(matrix, workload, height=height, fill=fill), workload)
    converting = matrix.nnz / fill * CONVERSION_CYCLES
    reason = (
        f"a row of the dense operand is loaded once for {height} neighboring rows, whose slots are filled to "
        f"{fill:.0%}"
    )
    return Estimate(
        "row_groups", {"height": height}, cycles, converting, reason, adds_zeros=fill < 1
    )


def _cycles(matrix: MatrixProperties, workload: Workload, *, height: int, fill: float) -> float:
    """Return the cycles of a product, the sum over all threads."""
    machine, row_bytes = workload.machine, workload.row_bytes
    stats = scheduled_stats(matrix)
    loads = row_loads(workload.columns, workload.dtype, machine, stats, rows=height)
    beside = 0.0 if loads.is_aligned else CROSSED_CYCLES.on(machine)
    if loads.prefetched_tiles:
        beside += PREFETCH_CYCLES.on(machine)
    # Aligned vectors are one more, and all tiles have the same number.
    vectors = workload.vectors + loads.is_aligned
    tiles = number_of_tiles(vectors, max_group_vectors(height, machine))
    computed = tiles * -(-vectors // tiles)
    # The elements of a column, on average.
    elements = height * fill
    load = gather_cycles(matrix, row_bytes, machine, elements=elements, beside=beside)
    once = COLUMN_CYCLES + page_cycles(matrix, row_bytes, machine, elements=elements)
    multiplied = height * GROUP_SLOT_CYCLES
    vector = max(load, multiplied) + EXPOSED_FRACTION * min(load, multiplied)
    column = tiles * once + computed * vector
    results = matrix.rows * vectors * RESULT_CYCLES.on(machine)
    return (
        matrix.nnz / elements * column + matrix.rows / height * tiles * GROUP_TILE_CYCLES + results
    )
