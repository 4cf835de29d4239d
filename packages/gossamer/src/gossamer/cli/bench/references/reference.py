"""The interface of references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gossamer_formats import Array, SparseTensor

BLOCK_ELEMENTS = 1 << 21
"""The number of elements that an oracle computes at a time, which limits its memory."""


class Shapes(NamedTuple):
    """The shapes of the dense operands, in order, and of the result."""

    dense: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]


class ReferencePart(NamedTuple):
    """Exact elements of a result at the index `at`: values and sums of the absolute values of their terms,
    both in float64, and the number of terms, which broadcasts to them."""

    at: tuple[slice, ...]
    exact: Array
    magnitude: Array
    terms: Array


class Reference(NamedTuple):
    """`shapes` takes the matrix and the number of features. `parts` yields the whole result of an operator on
    a matrix and dense operands, computed independently. `scipy` returns the baseline that is timed: a
    function that computes the result in a new array."""

    shapes: Callable[[SparseTensor, int], Shapes]
    parts: Callable[..., Iterator[ReferencePart]]
    scipy: Callable[..., Callable[[], Any]]


def blocks(count: int, width: int, *, elements: int = BLOCK_ELEMENTS) -> Iterator[slice]:
    """Yield slices of rows with this number of columns, in blocks of about this number of elements.

    >>> list(blocks(5, 3, elements=6))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    height = max(1, elements // max(1, width))
    for first in range(0, count, height):
        yield slice(first, min(first + height, count))
