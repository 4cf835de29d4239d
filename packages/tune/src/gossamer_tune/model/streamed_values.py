"""The cost of reading a matrix that is larger than the private caches."""

from __future__ import annotations

from gossamer_tune.model.workload import Workload

STREAMED_BYTES = 8.0
"""Bytes of values that arrive from the shared cache in a cycle."""

KEPT = 0.75
"""Fraction of the private cache up to which values are still there in the next call."""

NOT_HIDDEN = 0.5
"""Fraction of the shorter of computing and reading that the other does not hide (measured on 290,000 elements
of float64 in blocks of 3 by 3, in `bsr` and in `blocked_sell`: 0.54 and 0.47)."""

COLUMN_BYTES = 4
"""Bytes of the column of an element."""


def with_streamed(computed: float, stored: float, workload: Workload) -> float:
    """Return the cycles of a product that takes `computed` cycles with its matrix in the private caches, and
    reads so many bytes of it. Each thread reads its part.

    >>> [with_streamed(1000.0, size, Workload()) for size in (1e5, 16e6)]
    [1000.0, 2000500.0]
    """
    if stored / workload.threads <= workload.hardware.private_cache * KEPT:
        return computed
    streamed = stored / STREAMED_BYTES
    return max(computed, streamed) + min(computed, streamed) * NOT_HIDDEN
