"""Distances between uses of a column: which caches still hold the row of a dense operand for an element."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_support.arrays import Array
from gossamer_tune.properties.row_sample import elements_of_rows

MAX_LOOKBACK = 1 << 16
"""The number of consecutive elements of a chunk that are looked back from, and the number of elements before
each among which its column is looked for. Both are sorted in a few milliseconds."""

MAX_CHUNKS = 4
"""Maximum number of chunks, spread evenly, since parts of a matrix differ (a Delaunay mesh: the columns of 35
percent of the elements are not among the last 1500, in the middle of 23 percent)."""


class ColumnReuse(NamedTuple):
    """The reuse of columns in the order in which elements are visited.

    `windows` are numbers of elements in ascending order, from 0 on. For each, `later` is the fraction of
    elements whose column does not occur in a window of this size before. `columns` is the number of columns
    of the matrix.

    >>> reuse = ColumnReuse((0, 1, 2, 4), (1.0, 0.5, 0.25, 0.0), columns=2)
    >>> reuse.misses(rows=1.125), reuse.misses(rows=10)
    (0.25, 0.0)
    """

    windows: tuple[int, ...]
    later: tuple[float, ...]
    columns: int

    def misses(self, rows: float, *, others: float = 0.0) -> float:
        """Return the fraction of elements whose row of the operand is not in a cache of this many rows, of
        which the least recently used one is replaced.

        Each element takes `others` rows of the cache besides, for the matrix and the result. On average, a
        window has as many different columns as elements that are the first of their column (Denning, "The
        working set model for program behavior", Communications of the ACM 11, 1968).
        """
        held = 0.0
        for window, (length, later) in enumerate(zip(self.windows, self.later, strict=True)):
            # A window without elements holds nothing.
            if window == 0:
                continue
            before = self.later[window - 1]
            # The elements in between whose column is new take a row each.
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
    """Return the reuse of the columns of a matrix in CSR with this many, whose rows are visited in this order
    (None: in theirs), again and again.

    If there are many elements, only those in a few chunks are looked at.

    >>> column_reuse(8, np.array([0, 2, 4]), np.array([3, 7, 5, 3]), np.array([1, 0]))
    ColumnReuse(windows=(0, 1, 2, 4), later=(1.0, 0.75, 0.75, 0.0), columns=8)
    """
    elements = indices.size
    half = min(elements, MAX_LOOKBACK)
    chunks = min(MAX_CHUNKS, -(-elements // MAX_LOOKBACK))
    # The elements before a chunk are those of the call before, if it begins with the first one.
    starts = [chunk * elements // chunks - half for chunk in range(chunks)]
    visits = _visits(indptr, indices, order)
    counts = np.zeros(2 * half + 1, np.int64)
    for start in starts:
        distances = _distances(_visit_columns(visits, start, 2 * half))[half:]
        counts += np.bincount(distances, minlength=counts.size)
    # Powers of two, and those between them.
    exponents = np.arange(0, 2 * half.bit_length() + 1)
    windows = np.unique((2 ** (exponents / 2)).astype(np.int64))
    windows = windows[windows <= max(half, 1)]
    reused = (
        np.cumsum(counts)[windows] / max(chunks * half, 1) if elements else np.zeros(windows.size)
    )
    return ColumnReuse((0, *windows.tolist()), (1.0, *(1 - reused).tolist()), columns)


class _Visits(NamedTuple):
    """The elements of a matrix in the order in which they are visited: of the rows in an `order` (None: in
    theirs), whose elements end at `ends`."""

    indptr: Array
    indices: Array
    order: Array | None
    ends: Array


def _visits(indptr: Array, indices: Array, order: Array | None) -> _Visits:
    lengths = np.diff(indptr)
    ends = indptr[1:] if order is None else np.cumsum(lengths[order], dtype=np.int64)
    return _Visits(indptr, indices, order, ends)


def _visit_columns(visits: _Visits, start: int, count: int) -> Array:
    """Return the columns of `count` elements in the order in which they are visited. A negative start is in
    the call before."""
    indptr, indices, order, ends = visits
    if start < 0:
        # Products are repeated, so that the end of the matrix precedes its beginning.
        before = _visit_columns(visits, start + indices.size, -start)
        return np.concatenate((before, _visit_columns(visits, 0, count + start)))
    if order is None:
        return indices[start : start + count]
    first, last = np.searchsorted(ends, (start, start + count - 1), side="right")
    skipped = start - (ends[first - 1] if first else 0)
    chosen = order[first : last + 1]
    return elements_of_rows(indptr, indices, chosen).columns[skipped : skipped + count]


def _distances(columns: Array) -> Array:
    """Return, for each element, how many elements before the column occurs last; the number of all elements
    if it does not.

    >>> _distances(np.array([3, 3, 5, 3])).tolist()
    [4, 1, 4, 2]
    """
    # Sorted as numbers, of which the position is the low part: much faster than by `argsort`.
    numbers = (columns.astype(np.int64) << 32) | np.arange(columns.size)
    numbers.sort()
    positions, sorted_columns = numbers & 0xFFFF_FFFF, numbers >> 32
    # A column that does not occur before is as far away as can be told.
    distances = np.full(columns.size, columns.size, np.int64)
    same = np.flatnonzero(sorted_columns[1:] == sorted_columns[:-1])
    distances[positions[same + 1]] = positions[same + 1] - positions[same]
    return distances
