"""Distances between uses of a column: which caches still hold the row of a dense operand for an element."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_tune.properties.row_sample import Array, elements_of_rows

COMPARED_ELEMENTS = 1 << 18
"""The number of consecutive elements that are looked at: they are sorted in a few milliseconds. Half of them
are looked back from, so that the windows have up to 131,072 elements."""


class ColumnReuse(NamedTuple):
    """The reuse of columns in the order in which elements are visited.

    `windows` are numbers of elements in ascending order, from 0 on. `later` has for each the fraction of
    elements whose column does not occur among so many elements before. `columns` is the number of columns of
    the matrix.

    >>> reuse = ColumnReuse((0, 1, 2, 4), (1.0, 0.5, 0.25, 0.0), columns=2)
    >>> reuse.misses(rows=1.125), reuse.misses(rows=10)
    (0.25, 0.0)
    """

    windows: tuple[int, ...]
    later: tuple[float, ...]
    columns: int

    def misses(self, rows: float, *, others: float = 0.0) -> float:
        """Return the fraction of elements whose row of the operand is not in a cache of so many rows, of
        which the least recently used one is replaced.

        Each element takes `others` rows of the cache besides, for the matrix and the result. On average, a
        window has as many different columns as elements that are the first of their column (Denning, "The
        working set model for program behavior", Communications of the ACM 11, 1968).
        """
        held = 0.0
        for window, (length, later) in enumerate(zip(self.windows, self.later, strict=True)):
            if window == 0:
                continue
            before = self.later[window - 1]
            added = (length - self.windows[window - 1]) * ((before + later) / 2 + others)
            if added and held + added >= rows:
                return before + (later - before) * (rows - held) / added
            held += added
        # Longer windows were not looked at; with all rows in the cache, none is missing.
        rest = max(self.columns - held, 1.0)
        return self.later[-1] * min(1.0, max(0.0, self.columns - rows) / rest)


def column_reuse(
    columns: int, indptr: Array, indices: Array, order: Array | None = None
) -> ColumnReuse:
    """Return the reuse of the columns of a matrix in CSR with so many, whose rows are visited in this order
    (None: in theirs), again and again.

    Of more than `COMPARED_ELEMENTS` elements, those in the middle are looked at.

    >>> column_reuse(8, np.array([0, 2, 4]), np.array([3, 7, 5, 3]), np.array([1, 0]))
    ColumnReuse(windows=(0, 1, 2, 4), later=(1.0, 0.75, 0.75, 0.0), columns=8)
    """
    # The elements that are looked back from are the second half; for few elements, those of a second call.
    visited = _middle(indptr, indices, order)
    if 2 * visited.size <= COMPARED_ELEMENTS:
        visited = np.concatenate((visited, visited))
    half = visited.size // 2
    lengths = _distances(visited)[half:]
    # Powers of two, and those between them.
    exponents = np.arange(0, 2 * half.bit_length() + 1)
    windows = np.unique((2 ** (exponents / 2)).astype(np.int64))
    windows = windows[windows <= max(half, 1)]
    found = np.searchsorted(np.sort(lengths), windows, side="right") / max(lengths.size, 1)
    return ColumnReuse((0, *windows.tolist()), (1.0, *(1 - found).tolist()), columns)


def _middle(indptr: Array, indices: Array, order: Array | None) -> Array:
    """Return the columns of at most `COMPARED_ELEMENTS` elements in the middle."""
    count = min(indices.size, COMPARED_ELEMENTS)
    start = (indices.size - count) // 2
    if order is None:
        return indices[start : start + count]
    lengths = np.diff(indptr)[order].astype(np.int64)
    ends = np.cumsum(lengths)
    first, last = np.searchsorted(ends, (start, start + count), side="right")
    chosen = order[first : last + 1]
    return elements_of_rows(indptr, indices, chosen).columns[:count]


def _distances(columns: Array) -> Array:
    """Return, for each element, how many elements before the column occurs last; the number of all elements
    if it does not.

    >>> _distances(np.array([3, 3, 5, 3])).tolist()
    [4, 1, 4, 2]
    """
    # Sorted as numbers, of which the position is the low part: much faster than by `argsort`.
    numbers = (columns.astype(np.int64) << 32) | np.arange(columns.size)
    numbers.sort()
    positions, found = numbers & 0xFFFF_FFFF, numbers >> 32
    distances = np.full(columns.size, columns.size, np.int64)
    same = np.flatnonzero(found[1:] == found[:-1])
    distances[positions[same + 1]] = positions[same + 1] - positions[same]
    return distances
