"""The slots of axes in the order of their coordinates: a source is visited as if it was sorted."""

from __future__ import annotations

import numpy as np

from gossamer_formats.checks.storage_checks import fibers_of
from gossamer_formats.conversion.compiled.assembly_state import NotDirectError
from gossamer_formats.conversion.compiled.program import Compile
from gossamer_formats.conversion.compiled.sorted_fibers import sort_fibers
from gossamer_formats.storage import Array, Storage, evaluate
from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_ir.support.index_arrays import Segments, first_unsorted

LARGEST_HALF = 2**31 - 1
"""The largest number in one half of an int64."""


def sorted_slots(source: Storage, compile: Compile) -> dict[str, Array]:
    """Return the slots of axes, fiber by fiber, in the order of their coordinates, which must be distinct.

    An axis whose fibers are sorted is left out. Only slots are sorted: those of a blocked format are much
    fewer than the elements. Raises `NotDirectError` (`needs_order`) for fibers of fixed width.
    """
    found = {}
    for axis in source.description.axes:
        indices = indices_of(axis)
        if indices is None or indices.sorted:
            continue
        fibers = fibers_of(source, axis, indices)
        if first_unsorted(fibers, unique=True) is None:
            continue
        is_small = max(fibers.values.size, evaluate(axis.length, source.sizes)) <= LARGEST_HALF
        if indptr_of(axis) is None or not is_small:
            raise NotDirectError("the slots are not sorted", needs_order=True)
        found[axis.name] = _in_order(fibers, compile)
    return found


def _in_order(fibers: Segments, compile: Compile) -> Array:
    """Return the positions of values in the order of the values within each segment."""
    # Each number has the position in its low half, so that both are moved together.
    numbers = fibers.values.astype(np.int64)
    numbers <<= 32
    numbers |= np.arange(numbers.size)
    sort_fibers(compile, numbers, fibers.starts)
    return numbers.astype(np.int32)
