"""The distinct tuples among columns of integers, and the rank of each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gossamer_formats.storage import Array


class Distinct(NamedTuple):
    """`numbers`: for each element the number of its tuple, counted in lexicographic order; `firsts`: for
    each number an element that has the tuple."""

    numbers: Array
    firsts: Array


def sorting_order(columns: Sequence[Array]) -> Array | None:
    """Return the stable order that sorts the tuples of columns; None if they are sorted already.

    >>> sorting_order([np.array([1, 0, 1]), np.array([0, 5, 0])])
    array([1, 0, 2])
    """
    size = columns[0].size
    undecided = np.ones(max(size - 1, 0), bool)
    for column in columns:
        if np.any(undecided & (column[1:] < column[:-1])):
            return np.lexsort(tuple(columns)[::-1])
        undecided &= column[1:] == column[:-1]
    return None


def distinct(columns: Sequence[Array]) -> Distinct:
    """Return the distinct tuples of columns of equal size.

    >>> distinct([np.array([1, 0, 1]), np.array([2, 5, 2])])
    Distinct(numbers=array([1, 0, 1]), firsts=array([1, 0]))
    """
    order = sorting_order(columns)
    if order is None:
        order = np.arange(columns[0].size)
    starts = np.ones(order.size, bool)
    if order.size:
        starts[1:] = False
        for column in columns:
            in_order = column[order]
            starts[1:] |= in_order[1:] != in_order[:-1]
    numbers = np.empty(order.size, np.int64)
    numbers[order] = np.cumsum(starts) - 1
    return Distinct(numbers, order[starts])


def ranks_within(groups: Sequence[Array], columns: Sequence[Array]) -> Array:
    """Return the rank of each element's tuple of columns among the distinct ones of its group, from 0.

    >>> ranks_within([np.array([0, 0, 1])], [np.array([7, 3, 9])])
    array([1, 0, 0])
    """
    tuples = distinct([*groups, *columns])
    if not groups or not tuples.numbers.size:
        return tuples.numbers
    group = distinct(groups).numbers
    # The numbers of a group are consecutive, since its columns come first in the lexicographic order.
    first = np.full(int(group.max()) + 1, tuples.numbers.size)
    np.minimum.at(first, group, tuples.numbers)
    ranks: Array = tuples.numbers - first[group]
    return ranks


def occurrences(columns: Sequence[Array]) -> Array:
    """Return, for each element, how many elements before it have the same tuple.

    >>> occurrences([np.array([4, 2, 4, 4])])
    array([0, 0, 1, 2])
    """
    numbers = distinct(columns).numbers
    return ranks_within([numbers], [np.arange(numbers.size)])
