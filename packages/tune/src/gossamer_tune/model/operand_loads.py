"""The cost of a load of a vector from the rows of a dense operand, by the cache that holds them.

Figures are cycles for a vector of 64 bytes and its multiply-add, measured on one thread with sparse times
dense. The clock rate is not known exactly, but only ratios of costs matter:

| rows at random in | AMD Zen 4 | Intel Ice Lake | Intel Sapphire Rapids | here |
|---|--:|--:|--:|--:|
| the first-level cache | 1.0 to 1.2 | 1.0 to 1.2 | 0.9 to 1.2 | 1.0 |
| the second level | 1.6 to 2.4 | 1.4 to 2.2 | 1.3 to 2.2 | 1.7 |
| the third level | 2.7 to 4 | 5 to 8 | 4 to 8 | 5.0 |
| memory, with prefetches | 13 to 18 | 11 to 13 | 10 to 13 | 13.0 |
"""

from __future__ import annotations

from collections.abc import Callable

from gossamer_machine.machine import Machine
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

FIRST_CACHE = 32 << 10
"""Bytes of the first-level cache of nearly every CPU; targets do not state it."""

TRANSLATED_BYTES, PAGE_CYCLES = 64 * 4096, PerCpu(2.8, 0.71)
"""Bytes whose pages the first level of address translation holds, and the cycles by which a row on another
page is late (fitted to pruned weights on Emerald Rapids: elements that select from 1 MB take 1.5 to 2.5
cycles longer than the caches explain)."""

LOAD_CYCLES = PerCpu((1.0, 1.7, 5.0, 13.0), (1.0, 2.8, 5.2, 15.0), (0.54, 2.8, 5.2, 15.0))
"""Cycles for rows in the first, the second and the third level, and in memory."""

CROSSED_CYCLES, PREFETCH_CYCLES = PerCpu(0.5, 0.0), PerCpu(0.5, 0.5)
"""Cycles that a load from a near cache takes longer if it crosses a cache line, since it is two accesses of
one of two ports, and if the load of another row is prefetched. (Measured on Emerald Rapids with 512 features:
1.8 to 1.9 cycles for aligned rows in the second level, 2.7 to 2.8 for rows that are prefetched and cross
lines. Zen 4 computes vectors of 512 bits in two halves, of which only one crosses a line: blocks are expected
best without such a cost.)"""

PACK_CYCLES = PerCpu(9.0, 7.5)
"""Cycles for a vector that is packed besides its load from the operand (6 in all on Zen 4, 13 to 20 on
Sapphire Rapids)."""


def load_cycles(operand_bytes: float, machine: Machine, *, beside: float = 0.0) -> float:
    """Return the mean cycles of a load and multiply-add, for rows at random in an operand of this size.

    Loads from the first and the second level take `beside` longer; those from beyond are waited for longer
    than that.

    >>> load_cycles(1 << 14, Machine()), load_cycles(1 << 20, Machine())
    (1.0, 3.94375)
    >>> load_cycles(1 << 14, Machine(), beside=0.5)
    1.5
    """
    first, second, *far = LOAD_CYCLES.on(machine)
    near = (first + beside, second + beside)
    levels = (*near, *(max(near[1], cycles) for cycles in far))
    return mean_over_levels(levels, operand_bytes, machine)


def mean_over_levels(
    level_cycles: tuple[float, ...], operand_bytes: float, machine: Machine
) -> float:
    """Return the mean cycles of a load at random from an operand of this size, given those of a load from
    each of the three levels of caches and from memory.

    Each level holds a part of the operand; the rest is loaded from the next one. Half of the private cache is
    left to the matrix and the result.
    """
    sizes = (FIRST_CACHE, machine.private_cache // 2, machine.shared_cache)
    cycles = level_cycles[0]
    for size, near, far in zip(sizes, level_cycles, level_cycles[1:], strict=False):
        # The share of loads that a level cannot serve waits for the next one.
        cycles += max(0.0, 1 - size / max(operand_bytes, 1.0)) * (far - near)
    return cycles


def pack_cycles(matrix: MatrixProperties, workload: Workload) -> float:
    """Return the cycles for a vector of the dense operand that is packed, with its load."""
    machine = workload.machine
    return PACK_CYCLES.on(machine) + load_cycles(matrix.columns * workload.row_bytes, machine)


def gather_cycles(
    matrix: MatrixProperties,
    row_bytes: float,
    machine: Machine,
    *,
    elements: float = 1.0,
    beside: float = 0.0,
) -> float:
    """Return the mean cycles of a load and multiply-add for the elements of a matrix in the order of its
    rows. A load is for this many elements, on average, and takes `beside` longer from a near cache.

    A row of the operand that was used by a neighboring row of the matrix is still in a cache that holds the
    rows of the operand for these; the rows in between are half of those of a group, on average. Others are
    anywhere in the operand.
    """
    return _mean_cost(
        matrix,
        row_bytes,
        lambda size: load_cycles(size, machine, beside=beside),
        elements=elements,
    )


def page_cycles(
    matrix: MatrixProperties, row_bytes: float, machine: Machine, *, elements: float = 1.0
) -> float:
    """Return the mean cycles for the address translation of a row of the operand, for the elements of a
    matrix in the order of its rows."""
    return PAGE_CYCLES.on(machine) * _mean_cost(
        matrix,
        row_bytes,
        lambda size: max(0.0, 1 - TRANSLATED_BYTES / max(size, 1.0)),
        elements=elements,
    )


def _mean_cost(
    matrix: MatrixProperties, row_bytes: float, cost: Callable[[float], float], *, elements: float
) -> float:
    """Return the mean of a cost that depends on the bytes among which a row of the operand is at random."""
    anywhere = cost(matrix.columns * row_bytes)
    near = min(anywhere, cost(matrix.groups.distinct * row_bytes / 2))
    nearest = min(near, cost(matrix.near_groups.distinct * row_bytes / 2))
    # Elements of the same column in rows that share a load are one.
    fresh, fresh_near = (
        min(1.0, elements * matrix.groups.fresh),
        min(1.0, elements * matrix.near_groups.fresh),
    )
    return fresh * anywhere + (fresh_near - fresh) * near + (1 - fresh_near) * nearest
