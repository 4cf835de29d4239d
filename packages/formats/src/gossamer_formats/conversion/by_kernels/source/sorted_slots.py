"""The slots of axes in the order of their coordinates: a source is visited as if it was sorted."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.by_kernels.kernels.sort_fibers import sort_fibers
from gossamer_formats.conversion.by_kernels.recording.array_scalars import size_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import (
    RecordedStorage,
    is_list,
)
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.description_sizes import evaluate
from gossamer_ir.core.axis_kinds import Indices, indices_of, indptr_of, width_of
from gossamer_ir.facts.index_arrays import first_unsorted, segments_of
from gossamer_ir.nodes import Axis
from gossamer_support.arrays import Array

MAX_HALF = 2**31 - 1
"""The largest integer in one half of an int64."""


def sorted_slots(recorder: Recorder, source: RecordedStorage) -> dict[str, RecordedValue]:
    """Return the slots of axes, fiber by fiber, in the order of their coordinates, which must be distinct.

    An axis whose fibers are sorted is left out. Only slots are sorted: those of a blocked format are much
    fewer than the elements. Raises `NotDirectError` (`needs_order`) for fibers of fixed width.
    """
    by_axis = {}
    for axis in source.description.axes:
        indices = indices_of(axis)
        if indices is not None and not indices.sorted:
            slots = _slots_in_order(recorder, source, axis, indices)
            if slots is not None:
                by_axis[axis.name] = slots
    return by_axis


def _slots_in_order(
    recorder: Recorder, source: RecordedStorage, axis: Axis, indices: Indices
) -> RecordedValue | None:
    """Return the slots of an axis in order; None if they are in order."""
    indptr, length = indptr_of(axis), evaluate(axis.length, source.sizes)
    coordinates = source.arrays[indices.handle]
    pad = length if indices.padded else None
    if indptr is None:
        width = None if is_list(source.description, axis) else width_of(axis)
        size = None if width is None else evaluate(width, source.sizes)
        if recorder.decide(_are_rows_sorted, coordinates, size, pad):
            return None
        raise NotDirectError("the slots are not sorted", needs_order=True)
    offsets = source.arrays[indptr.handle]
    if recorder.decide(_are_sorted, coordinates, offsets, pad):
        return None
    if length > MAX_HALF or not recorder.decide(_is_small, coordinates):
        raise NotDirectError("the slots are not sorted", needs_order=True)
    pairs = recorder.compute(_with_slots, coordinates)
    count = recorder.compute(size_of, coordinates)
    sort_fibers(recorder, (pairs, count), "int64", (offsets, indptr.dtype))
    return recorder.compute(_low_halves, pairs)


def _are_sorted(coordinates: Array, offsets: Array, pad: int | None) -> bool:
    return first_unsorted(segments_of(coordinates, offsets, pad=pad), unique=True) is None


def _are_rows_sorted(coordinates: Array, width: int | None, pad: int | None) -> bool:
    """Return whether rows of a width are sorted; None: that of all coordinates."""
    rows = coordinates.reshape(-1, width) if width else coordinates
    return first_unsorted(segments_of(rows, None, pad=pad), unique=True) is None


def _is_small(coordinates: Array) -> bool:
    return coordinates.size <= MAX_HALF


def _with_slots(coordinates: Array) -> Array:
    """Return integers with the coordinate in the high half and the slot in the low one, so that both are
    moved together."""
    pairs = coordinates.astype(np.int64)
    pairs <<= 32
    pairs |= np.arange(pairs.size)
    return pairs


def _low_halves(pairs: Array) -> Array:
    return pairs.astype(np.int32)
