"""The cost of slices of rows (format `sell`) times a vector."""

from __future__ import annotations

from gossamer_tune.model.element_loads import LATE_CYCLES, level_of
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.streamed_values import COLUMN_BYTES, with_streamed
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties
from gossamer_tune.properties.slices import HEIGHT

SLOT_CYCLES = 1.1
"""Cycles for a slot of a row (measured on long rows: 1.3 to 1.45 on Sapphire Rapids, 1.0 to 1.1 on Emerald
Rapids)."""

SHARED_ROW_CYCLES = 2.0
"""Cycles by which a row delays a call on several threads (fitted to graphs and meshes on two threads of
Emerald Rapids, where slices of short rows are 1.4 to 1.8 times as fast with the second thread, and CSR 1.7 to
2.3 times). Windows in which the shares of two threads meet explain little of it: those of 256 rows are 1.1
times as fast as those of 4096 on one of eight matrices, and not on the others."""

LEAST_SHARED_CYCLES = 9_000.0
"""The delay of few rows (fitted to pruned weights with 10 to 26 elements in a row)."""

SLICE_CYCLES = 20.0
"""Cycles for a slice besides its slots: its results are stored to rows in any order, and the end of its loop
may be mispredicted."""

CONVERSION_CYCLES = 30.0
"""Cycles for a slot that is converted."""


def slices_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate for slices of 8 rows, sorted by length in windows. Products with matrices of one
    column do not compute with slices."""
    if workload.features is not None:
        return ()
    slots = matrix.nnz / matrix.slice_fill
    level = level_of(matrix.columns * workload.element_bytes, workload.hardware)
    computed = slots * SLOT_CYCLES + matrix.nnz * LATE_CYCLES[level]
    computed += -(-matrix.rows // HEIGHT) * SLICE_CYCLES
    stored = slots * (workload.element_bytes + COLUMN_BYTES)
    cycles = on_threads(with_streamed(computed, stored, workload), workload)
    cycles += shared_row_cycles(matrix.rows, workload)
    reason = (
        f"rows in lanes have no ends to predict, and slices are filled to {matrix.slice_fill:.0%}"
    )
    return (Estimate("sell", {"height": HEIGHT}, cycles, slots * CONVERSION_CYCLES, reason),)


def shared_row_cycles(rows: int, workload: Workload) -> float:
    """Return the cycles by which threads delay each other that store results of rows in any order.

    >>> [shared_row_cycles(10_000, Workload(threads=threads)) for threads in (1, 2)]
    [0.0, 20000.0]
    """
    if workload.threads == 1:
        return 0.0
    return max(rows * SHARED_ROW_CYCLES, LEAST_SHARED_CYCLES)
