"""How full the slices of SELL are."""

from __future__ import annotations

import numpy as np

from gossamer_tune.properties.row_sample import Array

HEIGHT, SIGMA = 8, 4096
"""The rows of a slice, and the rows of a window in which a conversion sorts them by length: the defaults of
the format (`tests/test_modelled_schedules.py`)."""


def slice_fill(lengths: Array) -> float:
    """Return the fraction of the slots of SELL that are elements, for rows of these lengths; 1 without any.

    >>> slice_fill(np.array([3, 1, 3, 3, 3, 3, 3, 3, 3])), slice_fill(np.zeros(5, np.int64))
    (0.78125, 1.0)
    """
    whole = lengths.size // SIGMA * SIGMA
    windows = np.sort(lengths[:whole].reshape(-1, SIGMA), axis=1)
    last = -np.sort(-lengths[whole:])
    # The longest row of each slice: sorted windows are a multiple of slices, and the last one begins with its
    # longest row.
    slots = HEIGHT * (int(windows[:, HEIGHT - 1 :: HEIGHT].sum()) + int(last[::HEIGHT].sum()))
    return int(lengths.sum()) / slots if slots else 1.0
