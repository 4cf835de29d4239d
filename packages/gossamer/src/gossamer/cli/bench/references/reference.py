"""What an operator is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gossamer_formats import Array, SparseTensor

BLOCK_ELEMENTS = 1 << 21
"""How many elements an oracle makes at a time, so that memory stays bounded."""


class Shapes(NamedTuple):
    """Of the dense operands in their order, and of the result."""

    dense: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]


class Part(NamedTuple):
    """The elements of a result `at` a place: their value and the sum of the absolute values of
    their terms, both in float64, and the number of terms, which broadcasts to them."""

    at: tuple[slice, ...]
    exact: Array
    magnitude: Array
    terms: Array


class Reference(NamedTuple):
    """`shapes` takes the matrix and the number of features; `parts` gives the whole result of an
    operator on a matrix and dense operands, independently of it; `scipy` what is timed beside it,
    prepared: a call makes the result in a new array."""

    shapes: Callable[[SparseTensor, int], Shapes]
    parts: Callable[..., Iterator[Part]]
    scipy: Callable[..., Callable[[], Any]]


def blocks(count: int, width: int, *, elements: int = BLOCK_ELEMENTS) -> Iterator[slice]:
    """Rows of so many columns, in blocks of about so many elements.

    >>> list(blocks(5, 3, elements=6))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    height = max(1, elements // max(1, width))
    for first in range(0, count, height):
        yield slice(first, min(first + height, count))
