"""The cost of rows in an order of communities (format `row_groups`) times a dense matrix."""

from __future__ import annotations

from gossamer_support.typed_calls import typed
from gossamer_tune.model.csr_times_dense import (
    ELEMENT_CYCLES,
    RESULT_CYCLES,
    ROW_CYCLES,
    gathered_rows_cycles,
)
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import FIRST_CACHE, LOAD_CYCLES
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.streamed_values import COLUMN_BYTES
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.column_reuse import ColumnReuse
from gossamer_tune.properties.matrix_properties import MatrixProperties

HELD_FRACTION = 0.75
"""The fraction of the private cache that holds what was used last: it is not fully associative."""

SCATTERED_CYCLES = PerCpu(1.0, 0.0)
"""Cycles that a vector of the result takes longer if rows are in any order (fitted to graphs on Emerald
Rapids: 0 to 1.2)."""

SCATTERED_ROW_CYCLES = PerCpu(0.0, 12.0, 31.0)
"""Cycles that a row of a result larger than the private cache takes longer if rows are in any order: the
processor fetches the lines of the next row only if rows follow each other, and those of one row after its
first ones (fitted to graphs and meshes: 10 to 14 on Zen 4 with 32 to 512 features; none are seen on Emerald
Rapids)."""

SHARED_RESULT_CYCLES = PerCpu(18.0, 9.0)
"""Cycles by which a row of the result delays a call on several threads if a private cache still has it from
the last call (fitted to 12 graphs and meshes with 32 to 512 features on two threads of Emerald Rapids: the
ratio to the time of CSR has a mean error of 10 percent, and of 14 with twice the cycles; two of them took 12
to 44). The row after it is often stored by another thread; a prefetch beyond its end may take lines from
there, which was not measured."""

KEPT_RESULT = 0.5
"""The fraction of the private caches that holds the result from the last call; the operand has the rest."""

CONVERSION_CYCLES = 150.0
"""Cycles to find the order and to convert the matrix, for an element (measured: 60 to 80 nanoseconds)."""

MIN_FRESH = 0.1
"""No order is looked for if fewer elements than this fraction select a row that the rows before them do not:
there is little to gain then."""


def ordered_rows_times_dense(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate for rows in another order, if the properties have one: that for CSR, in the ratio
    of the costs with the reuse of columns in both orders."""
    if matrix.reuse is None or matrix.ordered_reuse is None or workload.columns == 1:
        return ()
    csr = gathered_rows_cycles(matrix, workload)
    unordered = _cycles(matrix, workload, matrix.reuse)
    ordered = _cycles(matrix, workload, matrix.ordered_reuse)
    ordered += matrix.rows * _scattered_row_cycles(matrix, workload)
    held = workload.machine.private_cache * HELD_FRACTION / workload.row_bytes
    before, after = matrix.reuse.misses(held), matrix.ordered_reuse.misses(held)
    reason = (
        f"rows with columns in common are together, so that {after:.0%} of the rows that elements select are "
        f"not in the private cache, instead of {before:.0%}"
    )
    # Only the ratio counts, since both orders have the errors of this model of caches.
    cycles = on_threads(csr * ordered / unordered, workload)
    cycles += shared_result_cycles(matrix.rows, workload)
    converting = matrix.nnz * CONVERSION_CYCLES
    return (Estimate("row_groups", {"height": 1}, cycles, converting, reason, is_ordered=True),)


@typed
def may_gain_from_order(matrix: MatrixProperties, workload: Workload) -> bool:
    """Return whether another order of the rows may make a product faster: if the matrix is square, and its
    elements select rows of an operand that is larger than the private cache.

    >>> import numpy as np
    >>> from gossamer_tune import properties_of
    >>> matrix = properties_of((3, 3), np.array([0, 1, 2, 3]), np.array([2, 1, 0]))
    >>> may_gain_from_order(matrix, Workload(features=64))
    False
    """
    if workload.columns == 1 or matrix.rows != matrix.columns or matrix.groups.fresh < MIN_FRESH:
        return False
    return matrix.columns * workload.row_bytes > workload.machine.private_cache


def shared_result_cycles(rows: int, workload: Workload) -> float:
    """Return the cycles by which threads delay each other that store rows of a result in any order.

    >>> [shared_result_cycles(1000, Workload(features=64, threads=threads)) for threads in (1, 2)]
    [0.0, 9000.0]
    """
    if workload.threads == 1:
        return 0.0
    held = workload.threads * workload.machine.private_cache * KEPT_RESULT / workload.row_bytes
    return min(rows, held) * SHARED_RESULT_CYCLES.on(workload.machine)


def _scattered_row_cycles(matrix: MatrixProperties, workload: Workload) -> float:
    """Return the cycles that a row of the result takes longer if rows are in any order."""
    machine = workload.machine
    cycles = workload.vectors * SCATTERED_CYCLES.on(machine)
    if matrix.rows * workload.row_bytes > machine.private_cache:
        cycles += SCATTERED_ROW_CYCLES.on(machine)
    return cycles


def _cycles(matrix: MatrixProperties, workload: Workload, reuse: ColumnReuse) -> float:
    """Return the cycles of a product, one row after the other, in an order with this reuse of columns.

    Each level of the caches holds the rows of the operand that were used last, and what came with the
    elements in between: their values and columns, and rows of the result.
    """
    machine, row_bytes = workload.machine, workload.row_bytes
    # A large result is stored around the caches.
    is_cached = matrix.rows * row_bytes <= machine.shared_cache // 2
    results = row_bytes / matrix.lengths.mean if is_cached and matrix.lengths.mean else 0.0
    # Elements and results take room in the caches, too.
    others = (workload.element_bytes + COLUMN_BYTES + results) / row_bytes
    sizes = (FIRST_CACHE, machine.private_cache * HELD_FRACTION, machine.shared_cache)
    levels = LOAD_CYCLES.on(machine)
    load = levels[0]
    for size, near, far in zip(sizes, levels, levels[1:], strict=False):
        load += reuse.misses(size / row_bytes, others=others) * (far - near)
    cycles = matrix.nnz * (ELEMENT_CYCLES.on(machine) + workload.vectors * load)
    return cycles + matrix.rows * (
        ROW_CYCLES.on(machine) + RESULT_CYCLES.on(machine) * workload.vectors
    )
