"""Sizes of what the caller passes, which are never negative."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.contracts import LARGEST_SIZE
from gossamer_ir.nodes import Buffer, Expr, Function

COUNTS = f"from 1 to {LARGEST_SIZE}"
"""The numbers for which `is_count` is true, for hints."""


def is_count(value: int, *, least: int = 1) -> bool:
    """Whether a number that a step gives may count elements or iterations: with such numbers, and with
    sizes, which are no larger, index arithmetic does not wrap around.

    >>> is_count(16), is_count(0), is_count(2**62)
    (True, False, False)
    """
    return least <= value <= LARGEST_SIZE


def sizes_of(function: Function) -> Iterator[Expr]:
    """The extents of the buffers that are parameters."""
    lengths = {axis.name: axis.length for axis in function.axes}
    for found in function.buffers:
        if found.handle is None:
            continue
        if isinstance(found, Buffer):
            yield from found.shape
        else:
            yield from (lengths[name] for name in found.axes)
