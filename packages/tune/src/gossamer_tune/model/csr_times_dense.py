"""The cost of CSR times a dense matrix, with the schedule that its sizes select.

The default schedule has one of several forms (`gossamer_schedule/rules/library/row_spmm.py`). Long rows of
one or two vectors are added to several sums, tiles of features of a large operand are packed, and in other
cases rows are gathered from the operand where it is. Rule and model both ask `csr_form` which one it is.
"""

from __future__ import annotations

from gossamer_heuristics.csr_form import csr_form
from gossamer_heuristics.gathered_rows import row_loads
from gossamer_heuristics.thread_copies import packed_vectors
from gossamer_machine.machine import Machine
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import (
    CROSSED_CYCLES,
    PREFETCH_CYCLES,
    gather_cycles,
    pack_cycles,
    page_cycles,
)
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties, scheduled_stats

ELEMENT_CYCLES = PerCpu(1.0, 1.5, 3.6)
"""Cycles for the index and the value of an element, and for the addresses that follow."""

ROW_CYCLES, RESULT_CYCLES = PerCpu(12.0, 4.3), PerCpu(6.0, 8.7, 4.4)
"""Cycles for a row, most of them for the mispredicted end of its loop, and for a vector of its result."""

UNPACKED_SUM_LOADS = 2.0
"""Cost of a load from an operand that is not packed, of rows of one vector: it is two of aligned vectors."""


def csr_times_dense(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate of the matrix as it is."""
    if workload.columns == 1:
        return ()
    stats, machine = scheduled_stats(matrix), workload.machine
    match csr_form(workload.columns, workload.dtype, machine, stats):
        case "packed_sums":
            return (_summed_rows(matrix, workload, is_packed=True),)
        case "sums":
            return (_summed_rows(matrix, workload, is_packed=False),)
        case "packed_tiles":
            return (_packed_tiles(matrix, workload),)
        case "gathered_rows":
            return (_gathered_rows(matrix, workload),)


def gathered_rows_cycles(matrix: MatrixProperties, workload: Workload) -> float:
    """Return the cycles of a product in which rows are gathered from the operand where it is, the sum over
    all threads."""
    machine, row_bytes = workload.machine, workload.row_bytes
    loads = row_loads(workload.columns, workload.dtype, machine, scheduled_stats(matrix))
    if loads.is_aligned:
        # One more vector, because vectors are aligned to the cache lines of the operand.
        load = gather_cycles(matrix, row_bytes, machine)
        return _row_cycles(matrix, machine, workload.vectors + 1, load=load, row_bytes=row_bytes)
    beside = CROSSED_CYCLES.on(machine)
    if loads.prefetched_tiles:
        beside += PREFETCH_CYCLES.on(machine)
    load = gather_cycles(matrix, row_bytes, machine, beside=beside)
    # Tiles of rows that are prefetched are small, and each reads the elements of a row.
    tiles = max(1, loads.prefetched_tiles)
    vectors = workload.vectors / tiles
    return tiles * _row_cycles(matrix, machine, vectors, load=load, row_bytes=row_bytes)


def _gathered_rows(matrix: MatrixProperties, workload: Workload) -> Estimate:
    operand = matrix.columns * workload.row_bytes
    reason = (
        f"rows are gathered from an operand of {operand / 1e6:.3g} MB, {matrix.groups.fresh:.0%} of them not "
        "by neighboring rows"
    )
    cycles = on_threads(gathered_rows_cycles(matrix, workload), workload)
    return Estimate("csr", {}, cycles, 0.0, reason)


def _summed_rows(matrix: MatrixProperties, workload: Workload, *, is_packed: bool) -> Estimate:
    """Return the estimate for rows whose elements are added to several sums."""
    row_bytes = workload.row_bytes
    load = gather_cycles(matrix, row_bytes, workload.machine)
    load *= 1.0 if is_packed else UNPACKED_SUM_LOADS
    cycles = _row_cycles(matrix, workload.machine, workload.vectors, load=load, row_bytes=row_bytes)
    launches, shared = 1, 0
    if is_packed:
        cycles += _pack_cycles(matrix, workload)
        launches, shared = 2, matrix.columns * workload.vectors
    cycles = on_threads(cycles, workload, launches=launches, shared_vectors=shared)
    rows = "packed rows" if is_packed else "rows"
    reason = f"{rows} of the dense operand, of {row_bytes} bytes, are added to several sums"
    return Estimate("csr", {}, cycles, 0.0, reason)


def _packed_tiles(matrix: MatrixProperties, workload: Workload) -> Estimate:
    """Return the estimate for tiles of features that are packed."""
    machine = workload.machine
    vectors = packed_vectors(workload.dtype, machine)
    tiles = workload.vectors // vectors
    row_bytes = workload.row_bytes // tiles
    load = gather_cycles(matrix, row_bytes, machine)
    cycles = tiles * _row_cycles(matrix, machine, vectors, load=load, row_bytes=row_bytes)
    cycles += _pack_cycles(matrix, workload)
    # The rule packs only where that was measured to pay.
    cycles = min(cycles, gathered_rows_cycles(matrix, workload))
    cycles = on_threads(cycles, workload)
    copy = matrix.columns * row_bytes
    reason = f"each tile of features is packed, and rows are gathered from {copy / 1e6:.3g} MB"
    return Estimate("csr", {}, cycles, 0.0, reason)


def _pack_cycles(matrix: MatrixProperties, workload: Workload) -> float:
    """Return the cycles to pack the whole operand."""
    return matrix.columns * workload.vectors * pack_cycles(matrix, workload)


def _row_cycles(
    matrix: MatrixProperties, machine: Machine, vectors: float, *, load: float, row_bytes: float
) -> float:
    """Return the cycles for all rows of a tile of this many vectors of features, whose load and multiply-add
    takes so long. Rows of the operand, or of the copy from which they are loaded, have this many bytes."""
    element = ELEMENT_CYCLES.on(machine) + page_cycles(matrix, row_bytes, machine) + vectors * load
    return matrix.nnz * element + matrix.rows * (
        ROW_CYCLES.on(machine) + RESULT_CYCLES.on(machine) * vectors
    )
