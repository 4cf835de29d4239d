"""The cost of slices of rows (format `sell`) times a vector."""

from __future__ import annotations

from gossamer_tune.model.element_loads import late_cycles
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.streamed_values import vector_product_cycles
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties
from gossamer_tune.properties.slices import HEIGHT

SLOT_CYCLES = PerCpu(0.75, 0.69)
"""Cycles for a slot of a row: a gather, as for an element of CSR (fitted as `csr_times_vector` says)."""

SHARED_ROW_CYCLES = PerCpu(1.05, 0.14)
"""Cycles by which a row delays a call on several threads (fitted to graphs and meshes on two threads of
Emerald Rapids, where slices of short rows are 1.4 to 1.8 times as fast with the second thread, and CSR 1.7 to
2.3 times). Windows in which the shares of two threads meet explain little of it: those of 256 rows are 1.1
times as fast as those of 4096 on one of eight matrices, and not on the others."""

LEAST_SHARED_CYCLES = 6_000.0
"""The delay of few rows (fitted to 16 matrices with 512 to 20,000 rows in both precisions: products of CSR
take 0.74 to 1.5 times as long as those of slices on two threads, 0.86 to 2 times on one)."""

SLICE_CYCLES = PerCpu(12.0, 50.0)
"""Cycles for a slice besides its slots: its results are stored to rows in any order, and the end of its loop
may be mispredicted."""

CONVERSION_CYCLES = 30.0
"""Cycles for a slot that is converted."""


def slices_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate for slices of 8 rows, sorted by length in windows. Products with matrices of one
    column do not compute with slices."""
    if workload.features is not None:
        return ()
    machine, slots = workload.machine, matrix.nnz / matrix.slice_fill
    computed = slots * SLOT_CYCLES.on(machine) + matrix.nnz * late_cycles(matrix, workload)
    computed += -(-matrix.rows // HEIGHT) * SLICE_CYCLES.on(machine)
    cycles = vector_product_cycles(computed, slots, workload)
    cycles += shared_row_cycles(matrix.rows, workload)
    reason = (
        f"rows in lanes have no ends to predict, and slices are filled to {matrix.slice_fill:.0%}"
    )
    return (Estimate("sell", {"height": HEIGHT}, cycles, slots * CONVERSION_CYCLES, reason),)


def shared_row_cycles(rows: int, workload: Workload) -> float:
    """Return the cycles by which threads delay each other that store results of rows in any order.

    >>> [shared_row_cycles(10_000, Workload(threads=threads)) for threads in (1, 2)]
    [0.0, 6000.0]
    """
    if workload.threads == 1:
        return 0.0
    return max(rows * SHARED_ROW_CYCLES.on(workload.machine), LEAST_SHARED_CYCLES)
