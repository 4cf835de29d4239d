"""The cost of slices of rows (format `sell`) times a vector."""

from __future__ import annotations

from gossamer_machine.machine import Machine
from gossamer_tune.model.element_loads import late_cycles
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.streamed_values import vector_product_cycles
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

SLOT_CYCLES = PerCpu(0.75, 0.69, 1.0)
"""Cycles for a slot of a row: a gather, as for an element of CSR (fitted as `csr_times_vector` says)."""

SHARED_ROW_CYCLES = PerCpu(1.05, 0.14, 1.05)
"""Cycles by which a row delays a call on several threads (fitted to graphs and meshes on two threads of
Emerald Rapids, where slices of short rows are 1.4 to 1.8 times as fast with the second thread, and CSR 1.7 to
2.3 times). Windows in which the shares of two threads meet explain little of it: those of 256 rows are 1.1
times as fast as those of 4096 on one of eight matrices, and not on the others. On Zen 3, 0.8 to 2 choose
equally well; with 0.14, slices are chosen for roads on two threads, where CSR takes 0.9 times as long."""

MIN_SHARED_CYCLES = 6_000.0
"""The delay of few rows (fitted to 16 matrices with 512 to 20,000 rows in both precisions: products of CSR
take 0.74 to 1.5 times as long as those of slices on two threads, 0.86 to 2 times on one)."""

ROW_CYCLES, END_CYCLES = PerCpu(1.0, 6.0), PerCpu(4.0, 2.0)
"""Cycles for a row of a slice, whose result is stored anywhere; and for a slice besides, whose loop ends
(fitted to slices of 8, 16 and 32 rows of 30 matrices: more cycles for the end would make high slices faster
than they are. The ratio of the times of 8 and of 16 rows has a mean error of 3 percent on one thread.)"""

CONVERSION_CYCLES = 30.0
"""Cycles for a slot that is converted."""


def slices_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for slices of 8 and of 16 rows, sorted by length in windows. Products with
    matrices of one column do not compute with slices."""
    if workload.features is not None:
        return ()
    return tuple(
        _estimate(matrix, workload, height, fill) for height, fill in matrix.slice_fill.items()
    )


def _estimate(matrix: MatrixProperties, workload: Workload, height: int, fill: float) -> Estimate:
    machine, slots = workload.machine, matrix.nnz / fill
    computed = slots * SLOT_CYCLES.on(machine) + matrix.nnz * late_cycles(matrix, workload)
    computed += -(-matrix.rows // height) * slice_cycles(height, machine)
    cycles = vector_product_cycles(computed, slots, workload)
    cycles += shared_row_cycles(matrix.rows, workload)
    reason = f"rows in lanes have no ends to predict, and slices are filled to {fill:.0%}"
    return Estimate("sell", {"height": height}, cycles, slots * CONVERSION_CYCLES, reason)


def slice_cycles(height: int, machine: Machine) -> float:
    """Return the cycles for a slice of this many rows besides its slots.

    >>> [slice_cycles(height, Machine(gathers="fast")) for height in (8, 16)]
    [12.0, 20.0]
    """
    return END_CYCLES.on(machine) + height * ROW_CYCLES.on(machine)


def shared_row_cycles(rows: int, workload: Workload) -> float:
    """Return the cycles by which threads delay each other that store results of rows in any order.

    >>> [shared_row_cycles(10_000, Workload(threads=threads)) for threads in (1, 2)]
    [0.0, 6000.0]
    """
    if workload.threads == 1:
        return 0.0
    return max(rows * SHARED_ROW_CYCLES.on(workload.machine), MIN_SHARED_CYCLES)
