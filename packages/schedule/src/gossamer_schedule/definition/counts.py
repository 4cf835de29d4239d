"""Numbers that are valid counts of elements or iterations."""

from __future__ import annotations

from gossamer_ir.core.limits import MAX_SIZE

COUNT_RANGE = f"from 1 to {MAX_SIZE}"
"""The numbers that `is_count` accepts, for hints of errors."""


def is_count(value: int, *, least: int = 1) -> bool:
    """Return whether a number given by a step is a valid count of elements or iterations.

    Index arithmetic does not overflow with such counts, nor with sizes, which are no larger.

    >>> is_count(16), is_count(0), is_count(2**62)
    (True, False, False)
    """
    return least <= value <= MAX_SIZE
