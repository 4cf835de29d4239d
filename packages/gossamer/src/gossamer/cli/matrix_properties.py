"""Properties of a matrix that a person reads: the lengths of its rows, and its bandwidth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats import Array


class RowBucket(NamedTuple):
    """The number of rows that have `least` to `most` elements, and the number of elements in them."""

    least: int
    most: int
    rows: int
    nonzeros: int


def row_histogram(indptr: Array) -> list[RowBucket]:
    """Return how many rows of a matrix in CSR are empty, or have 1, 2, 3 to 4, 5 to 8, ... elements.

    These are the buckets of `hyb`. `indptr` has rows + 1 offsets. The first and the last bucket have rows.

    >>> for bucket in row_histogram(np.array([0, 1, 2, 9])):
    ...     print(*bucket)
    1 1 2 2
    2 2 0 0
    3 4 0 0
    5 8 1 7
    """
    lengths = np.diff(indptr)
    if not lengths.size:
        return []
    most = np.concatenate([[0], 1 << np.arange(63)])
    numbers = np.searchsorted(most, lengths)
    first, last = int(numbers.min()), int(numbers.max())
    rows = np.bincount(numbers, minlength=last + 1)
    nonzeros = np.bincount(numbers, lengths, minlength=last + 1)
    least = np.concatenate([[0], most[:-1] + 1])
    columns = (least, most, rows, nonzeros)
    return [
        RowBucket(*(int(column[number]) for column in columns)) for number in range(first, last + 1)
    ]


class Bandwidth(NamedTuple):
    """The number of diagonals below the main one, and above it, up to the farthest element."""

    lower: int
    upper: int


def bandwidth_of(indptr: Array, indices: Array) -> Bandwidth:
    """Return the bandwidth of a matrix in CSR, whose columns need not be sorted.

    >>> bandwidth_of(np.array([0, 2, 2, 3]), np.array([4, 0, 1]))
    Bandwidth(lower=1, upper=4)
    """
    rows = np.flatnonzero(np.diff(indptr))
    if not rows.size:
        return Bandwidth(0, 0)
    starts = indptr[rows]
    lower = int((rows - np.minimum.reduceat(indices, starts)).max())
    upper = int((np.maximum.reduceat(indices, starts) - rows).max())
    return Bandwidth(max(lower, 0), max(upper, 0))
