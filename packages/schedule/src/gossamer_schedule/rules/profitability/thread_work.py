"""The work that pays for a thread, and the weights of rows."""

from __future__ import annotations

FULL_VECTORS_PER_THREAD = 8_192
"""Minimum vectors of work for a thread, about 4 microseconds. With less, waking the thread costs more than it
saves."""

WORK_PER_ROW = 4
"""Cost of a row besides its stored elements, in elements."""


def grain(vectors_per_element: int) -> int:
    """Return the minimum weight for a thread, given the vectors of work per element."""
    return max(1, FULL_VECTORS_PER_THREAD // vectors_per_element)
