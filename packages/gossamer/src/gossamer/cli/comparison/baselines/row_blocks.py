"""Blocks of rows, which limit the memory of intermediate results."""

from __future__ import annotations

from collections.abc import Iterator


def row_blocks(count: int, width: int, *, elements: int) -> Iterator[slice]:
    """Yield slices of rows with this number of columns, in blocks of about this number of elements.

    >>> list(row_blocks(5, 3, elements=6))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    height = max(1, elements // max(1, width))
    for first in range(0, count, height):
        yield slice(first, min(first + height, count))
