"""The distinct tuples among columns of integers, and the rank of each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gossamer_support.arrays import Array


class DistinctTuples(NamedTuple):
    """`ranks`: for each element the rank of its tuple in lexicographic order; `firsts`: for
    each rank an element that has the tuple."""

    ranks: Array
    firsts: Array


def sorting_order(columns: Sequence[Array]) -> Array | None:
    """Return the stable order that sorts the tuples of columns; None if they are sorted already.

    >>> sorting_order([np.array([1, 0, 1]), np.array([0, 5, 0])])
    array([1, 0, 2])
    """
    # Columns at the end by which the tuples are in order need no sorting, since the sort is stable.
    unsorted = len(columns)
    while unsorted and _is_sorted(columns[unsorted - 1 :]):
        unsorted -= 1
    if unsorted and _is_sorted(columns):
        return None
    order: Array | None = None
    for column in reversed(columns[:unsorted]):
        order = _sort_by(column, order)
    return order


def _is_sorted(columns: Sequence[Array]) -> bool:
    undecided: Array | None = None
    for column in columns:
        later, earlier = column[1:], column[:-1]
        decreases = later < earlier
        if undecided is not None:
            decreases &= undecided
        if decreases.any():
            return False
        is_equal = later == earlier
        undecided = is_equal if undecided is None else undecided & is_equal
    return True


_DIGIT = 16
"""NumPy's stable sort of integers of up to 16 bits is a radix sort; that of wider ones compares."""


def _sort_by(column: Array, order: Array | None) -> Array:
    """Return the order with elements sorted by a column, stably."""
    low = int(column.min(initial=0))
    span = int(column.max(initial=0)) - low
    keys = column - low
    for shift in range(0, max(span.bit_length(), 1), _DIGIT):
        digits = (keys >> shift).astype(np.uint16)
        if order is None:
            order = np.argsort(digits, kind="stable")
        else:
            order = order[np.argsort(digits[order], kind="stable")]
    assert order is not None
    return order


def distinct(columns: Sequence[Array]) -> DistinctTuples:
    """Return the distinct tuples of columns of equal size.

    >>> distinct([np.array([1, 0, 1]), np.array([2, 5, 2])])
    DistinctTuples(ranks=array([1, 0, 1]), firsts=array([1, 0]))
    """
    order = sorting_order(columns)
    in_order = columns if order is None else [column[order] for column in columns]
    starts = np.ones(columns[0].size, bool)
    if starts.size:
        np.not_equal(in_order[0][1:], in_order[0][:-1], out=starts[1:])
        for column in in_order[1:]:
            starts[1:] |= column[1:] != column[:-1]
    counted = np.cumsum(starts) - 1
    if order is None:
        return DistinctTuples(counted, np.flatnonzero(starts))
    ranks = np.empty(order.size, np.int64)
    ranks[order] = counted
    return DistinctTuples(ranks, order[starts])


def ranks_within(groups: Sequence[Array], columns: Sequence[Array]) -> Array:
    """Return the rank of each element's tuple of columns among the distinct ones of its group, from 0.

    >>> ranks_within([np.array([0, 0, 1])], [np.array([7, 3, 9])])
    array([1, 0, 0])
    """
    tuples = distinct([*groups, *columns])
    if not groups or not tuples.ranks.size:
        return tuples.ranks
    group = distinct(groups).ranks
    # The ranks of a group are consecutive, since its columns come first in the lexicographic order.
    first = np.full(int(group.max()) + 1, tuples.ranks.size)
    np.minimum.at(first, group, tuples.ranks)
    within: Array = tuples.ranks - first[group]
    return within


def occurrences(columns: Sequence[Array]) -> Array:
    """Return, for each element, how many elements before it have the same tuple.

    >>> occurrences([np.array([4, 2, 4, 4])])
    array([0, 0, 1, 2])
    """
    ranks = distinct(columns).ranks
    return ranks_within([ranks], [np.arange(ranks.size)])
