"""Rows that are too long for one sum.

A kernel adds the elements of a row in the dtype of its result. A very long row is therefore cut into
segments, whose sums are added in float64.
"""

from __future__ import annotations

import numpy as np

from gossamer_formats import Array

MAX_SUM = 1 << 24
"""The longest row that is summed at once. float32 represents all integers up to this one, not the next."""

SEGMENT_ELEMENTS = 1 << 16
"""The number of elements of a segment of a long row."""


def segment_offsets(indptr: Array) -> tuple[Array, Array]:
    """Return the offsets of segments, and the index of the first segment of each row. An empty row has one
    segment.

    >>> offsets, starts = segment_offsets(np.array([0, 2, 2, SEGMENT_ELEMENTS + 5]))
    >>> offsets.tolist() == [0, 2, 2, SEGMENT_ELEMENTS + 2, SEGMENT_ELEMENTS + 5], starts.tolist()
    (True, [0, 1, 2])
    """
    begins = indptr[:-1].astype(np.int64)
    # One segment for an empty row, because `reduceat` has no sum of none.
    counts = np.maximum(1, -(-(indptr[1:] - begins) // SEGMENT_ELEMENTS))
    starts = np.cumsum(counts) - counts
    row = np.repeat(np.arange(len(counts)), counts)
    offsets = begins[row] + SEGMENT_ELEMENTS * (np.arange(len(row)) - starts[row])
    return np.append(offsets, indptr[-1]).astype(indptr.dtype), starts
