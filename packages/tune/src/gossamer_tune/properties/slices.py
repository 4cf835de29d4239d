"""The share of slots of SELL that hold elements."""

from __future__ import annotations

import numpy as np

from gossamer_heuristics.row_lengths import window_rows
from gossamer_support.arrays import Array

HEIGHT = 8
"""The rows of a slice: the default of the format (`tests/integration/test_modelled_schedules.py`)."""

HEIGHTS = (HEIGHT, 16)
"""The numbers of rows of a slice whose fill is measured. Higher slices gain nothing (measured with 30
matrices on Emerald Rapids and Zen 4: 32 rows are 0.85 to 1.06 times as fast as 16 if rows are equally long,
and 0.75 to 1.0 times otherwise)."""


def slice_fill(lengths: Array, *, height: int = HEIGHT) -> float:
    """Return the fraction of the slots of SELL in slices of this many rows that are elements, for rows of
    these lengths; 1 without any.

    >>> slice_fill(np.array([3, 1, 3, 3, 3, 3, 3, 3, 3])), slice_fill(np.zeros(5, np.int64))
    (0.78125, 1.0)
    """
    size = window_rows(lengths.size)
    # The last window is shorter than the others, so it cannot be a row of the same array.
    whole = lengths.size // size * size
    windows = np.sort(lengths[:whole].reshape(-1, size), axis=1)
    last = -np.sort(-lengths[whole:])
    # The longest row of each slice: sorted windows are a multiple of slices, and the last one begins with its
    # longest row.
    slots = height * (int(windows[:, height - 1 :: height].sum()) + int(last[::height].sum()))
    return int(lengths.sum()) / slots if slots else 1.0
