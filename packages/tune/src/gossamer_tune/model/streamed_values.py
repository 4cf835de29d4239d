"""The cost of reading a matrix that is larger than the private caches."""

from __future__ import annotations

from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload

STREAMED_BYTES = PerCpu(11.5, 27.0, 39.0)
"""Bytes of a matrix that arrive from the shared cache in a cycle, beside computing (fitted as
`csr_times_vector` says; blocks of 16 by 16, with which little is computed, arrive at 10.5 to 11.6)."""

ALL_KEPT, NONE_KEPT = 0.3, 1.3
"""The part of a matrix that is still in a private cache in the next call: all of it if it has at most the
first fraction of the cache, nothing from the second one on (fitted likewise: with a limit in between, instead
of a gradual loss, the error is 5 percent larger)."""

NOT_HIDDEN = PerCpu(0.1, 1.0)
"""Fraction of the shorter of computing and reading that the other does not hide (fitted likewise)."""

COLUMN_BYTES = 4
"""Bytes of the column of an element."""


def stored_bytes(slots: float, size: int, workload: Workload) -> float:
    """Return the bytes of this many slots in square blocks of this size, each with a column.

    >>> [stored_bytes(16, size, Workload()) for size in (1, 4)]
    [128.0, 68.0]
    """
    return slots * (workload.element_bytes + COLUMN_BYTES / size**2)


def vector_product_cycles(
    computed: float, slots: float, workload: Workload, *, block: int = 1
) -> float:
    """Return the cycles of a call of a product with a vector that takes `computed` cycles on one thread with
    its matrix in the private caches, and reads this many slots in square blocks of a size.

    >>> [vector_product_cycles(1e6, 1e4, Workload(threads=threads)) for threads in (1, 2)]
    [1000000.0, 519000.0]
    """
    streamed = with_streamed(computed, stored_bytes(slots, block, workload), workload)
    return on_threads(streamed, workload)


def with_streamed(computed: float, stored: float, workload: Workload) -> float:
    """Return the cycles of a product that takes `computed` cycles with its matrix in the private caches, and
    reads this many bytes of it. Each thread reads its part.

    >>> [with_streamed(1000.0, size, Workload()) for size in (1e5, 23e6)]
    [1000.0, 852851.8518518518]
    """
    machine = workload.machine
    caches = stored / workload.threads / machine.private_cache
    lost = min(1.0, max(0.0, (caches - ALL_KEPT) / (NONE_KEPT - ALL_KEPT)))
    streamed = lost * stored / STREAMED_BYTES.on(machine)
    return max(computed, streamed) + min(computed, streamed) * NOT_HIDDEN.on(machine)
