"""The number of times that the rows of a dense operand are used."""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats

MANY_USES = 16
"""Minimum mean number of stored elements of a column, each of which uses a row of the dense operand, for
most of its rows to be in a cache when they are read (aligned loads, measured at 19 to 40 MB: 1.3 to 1.8 times
faster with 29 to 60 elements, 0.7 to 0.9 with 2 to 7), and for threads to pack tiles of long rows
(`thread_copies` has the times). Products of blocks count loads: `SHARED_TILE_LOADS` of `operand_copies`."""


def is_used_often(stats: Stats, *, uses: int = MANY_USES) -> bool:
    """Return whether the rows of an operand, one for each column of the matrix, are used so often on
    average.

    >>> is_used_often(Stats(rows=100, columns=10, nnz=160, longest_row=2, empty_rows=0))
    True
    """
    return stats.nnz >= uses * stats.columns
