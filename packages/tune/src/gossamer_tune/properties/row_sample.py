"""A sample of the rows of a matrix in CSR: groups of neighboring rows, spread evenly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_support.arrays import Array

GROUP = 48
"""The rows of a group: a multiple of the block sizes 2, 3, 4, 6, 8 and 16, so that whole blocks are seen."""

SAMPLED_ELEMENTS = 1 << 17
"""The number of elements in a sample, more or less: a sample is read in about a millisecond."""


class RowSample(NamedTuple):
    """The rows and columns of the elements of some groups of rows."""

    rows: Array
    columns: Array


def sample_rows(indptr: Array, indices: Array) -> RowSample:
    """Return the elements of groups of `GROUP` rows, of all rows if the matrix has few elements.

    >>> sample_rows(np.array([0, 2, 3]), np.array([0, 5, 1]))
    RowSample(rows=array([0, 0, 1]), columns=array([0, 5, 1]))
    """
    length, nnz = indptr.size - 1, indices.size
    chosen = np.arange(length)
    if nnz > SAMPLED_ELEMENTS:
        groups = -(-length // GROUP)
        wanted = max(1, groups * SAMPLED_ELEMENTS // nnz)
        # Whole groups of neighbors, since blocks and columns in common are properties of neighboring rows.
        firsts = np.unique(np.linspace(0, groups - 1, wanted).astype(np.int64)) * GROUP
        chosen = (firsts[:, np.newaxis] + np.arange(GROUP)).reshape(-1)
        chosen = chosen[chosen < length]
    return elements_of_rows(indptr, indices, chosen)


def elements_of_rows(indptr: Array, indices: Array, chosen: Array) -> RowSample:
    """Return the elements of some rows, in the order of these.

    >>> elements_of_rows(np.array([0, 2, 3]), np.array([0, 5, 1]), np.array([1, 0]))
    RowSample(rows=array([1, 0, 0]), columns=array([1, 0, 5]))
    """
    begins = indptr[chosen].astype(np.int64)
    lengths = indptr[chosen + 1].astype(np.int64) - begins
    skipped = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    columns = indices[np.repeat(begins, lengths) + skipped].astype(np.int64)
    return RowSample(np.repeat(chosen, lengths), columns)


def distinct_count(numbers: Array) -> int:
    """Return how many different numbers there are.

    The numbers of a sample are sorted in a few milliseconds; the hash table of `numpy.unique` takes a
    hundred.

    >>> distinct_count(np.array([3, 1, 3])), distinct_count(np.array([]))
    (2, 0)
    """
    ascending = np.sort(numbers)
    return int(np.count_nonzero(ascending[1:] != ascending[:-1])) + bool(ascending.size)
