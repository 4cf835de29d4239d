"""Windows of rows that are sorted by length, for formats whose threads store results to rows in any order."""

from __future__ import annotations

MIN_WINDOW, MAX_WINDOW, WINDOWS = 256, 4096, 16
"""Minimum and maximum number of rows of a window, and about how many windows there are.

Wide windows leave few slots of SELL unused (measured for products with vectors: up to 1.4 times as fast with
4096 rows as with 256). But threads that store results to rows of the same window take cache lines from each
other (measured on two threads: 1.7 times as slow if 2700 rows are one window), so that each has several.
"""


def window_rows(rows: int) -> int:
    """Return the number of rows of a window, a power of two, for a matrix with this many rows.

    >>> [window_rows(rows) for rows in (100, 20_000, 10**6)]
    [256, 1024, 4096]
    """
    return max(MIN_WINDOW, min(MAX_WINDOW, 1 << (rows // WINDOWS).bit_length() >> 1))
