"""Numbers that are valid counts of elements or iterations."""

from __future__ import annotations

from gossamer_ir.interchange.records import LARGEST_SIZE

COUNTS = f"from 1 to {LARGEST_SIZE}"
"""The numbers for which `is_count` is true, for hints."""


def is_count(value: int, *, least: int = 1) -> bool:
    """Whether a number that a step gives may count elements or iterations: with such numbers, and with
    sizes, which are no larger, index arithmetic does not wrap around.

    >>> is_count(16), is_count(0), is_count(2**62)
    (True, False, False)
    """
    return least <= value <= LARGEST_SIZE
