"""The coordinates of an axis, fiber by fiber, and those that occur twice in a fiber."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_formats.description_sizes import evaluate
from gossamer_formats.storage import Storage
from gossamer_ir.core.axis_kinds import Indices, indptr_of, width_of
from gossamer_ir.facts.index_arrays import Segments, first_unsorted, segments_of
from gossamer_ir.nodes import Axis


def fibers_of(storage: Storage, axis: Axis, indices: Indices) -> Segments:
    """Return the coordinates of an axis, segment by segment."""
    coordinates = storage.arrays[indices.handle]
    pad = evaluate(axis.length, storage.sizes) if indices.padded else None
    indptr = indptr_of(axis)
    if indptr is not None:
        return segments_of(coordinates, storage.arrays[indptr.handle], pad=pad)
    width = evaluate(width_of(axis), storage.sizes)
    return segments_of(coordinates.reshape(-1, width) if width else coordinates, None, pad=pad)


def has_repeated(fibers: Segments) -> bool:
    """Return whether a coordinate occurs twice in a fiber, except for padding.

    >>> has_repeated(Segments(np.array([2, 0, 2]), np.array([0, 2, 3])))
    False
    """
    from scipy.sparse import csr_array  # takes 0.1 s to import

    # SciPy sorts within rows, about ten times as fast as a sort by fiber and coordinate.
    values, starts, pad = fibers
    # The least shape that holds the coordinates: SciPy checks them against it.
    shape = (starts.size - 1, int(values.max(initial=-1)) + 1)
    marks = np.zeros(values.size, dtype=np.int8)
    rows: Any = csr_array((marks, values.copy(), starts.copy()), shape=shape)
    rows.sort_indices()
    return first_unsorted(Segments(rows.indices, starts, pad), unique=True) is not None


def first_repeated_coordinate(fibers: Segments) -> int | None:
    """Return the first position whose coordinate occurs before in its fiber, or None."""
    if not has_repeated(fibers):
        return None
    starts = np.asarray(fibers.starts, np.int64)
    numbers = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    # Stable, so that of equal coordinates the first stays the first.
    order = np.lexsort((fibers.values, numbers))
    if fibers.pad is not None:
        order = order[fibers.values[order] != fibers.pad]
    values, numbers = fibers.values[order], numbers[order]
    repeated = (values[1:] == values[:-1]) & (numbers[1:] == numbers[:-1])
    return int(order[1:][repeated].min())
