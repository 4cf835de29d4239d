"""The offsets of fibers, and the numbers of slots of axes whose fibers vary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    BuiltStorage,
    IndexArray,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.statements import load, store
from gossamer_formats.conversion.by_kernels.recording.array_scalars import (
    longest_of,
    sum_of,
    total_of,
)
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import is_list
from gossamer_formats.conversion.destination.dtypes import native_index_dtype
from gossamer_ir.core.axis_kinds import Indptr, is_varied, width_of
from gossamer_ir.core.build import ONE, add
from gossamer_ir.nodes import Axis, Expr, Store, Var
from gossamer_support.arrays import Array


class FiberOffsets(NamedTuple):
    """The first slots of fibers, the number of all slots, and what these add to the storage."""

    array: RecordedValue
    dtype: str
    total: RecordedValue
    storage: BuiltStorage


def offsets_from_lengths(
    state: BuildState,
    indptr: Indptr,
    *,
    lengths: RecordedValue,
    most: RecordedValue,
) -> FiberOffsets:
    """Return the offsets of fibers with known lengths; there are at most `most` slots."""
    dtype = state.recorder.decide(native_index_dtype, most)
    offsets = state.recorder.compute(offsets_of_lengths, lengths, dtype)
    return fiber_offsets(state, indptr, offsets=offsets, dtype=dtype)


def dense_fibers(
    state: BuildState, axis: Axis, *, indptr: Indptr, lengths: RecordedValue
) -> tuple[Expr, FiberOffsets]:
    """Return the first slot of the element's fiber, and the offsets, of an axis that stores no coordinates;
    the longest fiber is as long as the axis.

    Raises `NotDirectError` if one is longer.
    """
    longest = state.recorder.decide(longest_of, lengths)
    if state.sizes.bind(axis.length, longest) < longest:
        raise NotDirectError("a fiber is too long")
    most = state.recorder.compute(sum_of, lengths)
    offsets = offsets_from_lengths(state, indptr, lengths=lengths, most=most)
    return first_slot(state, axis, offsets=offsets, parent=state.axis_slots[axis.parent]), offsets


def first_slot(state: BuildState, axis: Axis, *, offsets: FiberOffsets, parent: AxisSlot) -> Expr:
    """Pass offsets to the kernels, and return the first slot of the element's fiber."""
    name, size = f"OFFSETS_{axis.name}", add(parent.size.expr, ONE)
    state.arguments.array(name, offsets.array, offsets.dtype, size)
    return load(name, parent.slot, offsets.dtype)


def fiber_offsets(
    state: BuildState, indptr: Indptr, *, offsets: RecordedValue, dtype: str
) -> FiberOffsets:
    """Return the offsets of fibers whose array is complete."""
    total = state.recorder.compute(total_of, offsets)
    array = IndexArray(offsets, dtype, total)
    storage = BuiltStorage({indptr.handle: array}, slot_counts=slot_total(state, indptr, total))
    return FiberOffsets(offsets, dtype, total, storage)


def slot_total(state: BuildState, indptr: Indptr, total: RecordedValue) -> dict[str, RecordedValue]:
    """Return the size that is the number of all slots of an axis whose fibers vary, if it is not given.

    Raises `NotDirectError` if it is given and differs.
    """
    if indptr.nnz is None:
        return {}
    if isinstance(indptr.nnz, Var) and not state.sizes.is_known(indptr.nnz):
        return {indptr.nnz.name: total}
    if not state.recorder.decide(_are_equal, total, state.sizes.value(indptr.nnz)):
        raise NotDirectError("the number of slots differs from the one that is given")
    return {}


def is_unknown_list(state: BuildState, axis: Axis) -> bool:
    """Return whether the only fiber of an axis may have any number of slots, which becomes a size."""
    width = None if is_varied(axis) else width_of(axis)
    is_unknown = isinstance(width, Var) and not state.sizes.is_known(width)
    return is_unknown and is_list(state.description, axis)


def list_size(axis: Axis, count: RecordedValue) -> dict[str, RecordedValue]:
    """Return the size that is the number of slots of an axis with a single fiber."""
    width = width_of(axis)
    assert isinstance(width, Var)
    return {width.name: count}


def _are_equal(first: int, second: int) -> bool:
    return first == second


def offsets_of_lengths(lengths: Array, dtype: str) -> Array:
    """Return the first slots of fibers, and the number of all slots.

    >>> offsets_of_lengths(np.array([2, 0, 1]), "int32")
    array([0, 2, 2, 3], dtype=int32)
    """
    offsets = np.empty(lengths.size + 1, dtype)
    offsets[0] = 0
    # Summed in the dtype of the offsets, since that of the lengths may be too narrow.
    lengths.cumsum(dtype=dtype, out=offsets[1:])
    return offsets


ENDS = "ENDS"
"""The array in which kernels store the ends of fibers; its first element is the start of the first fiber."""


def new_ends(state: BuildState, fibers: AxisSlot, dtype: str | None = None) -> ArrayArgument:
    """Return the array of ends before any is known; by default, each value of the source may have a slot."""
    if dtype is None:
        dtype = state.recorder.decide(native_index_dtype, state.source.value_count)
    ends = state.recorder.compute(_no_ends, fibers.size.value, dtype)
    return ArrayArgument(ends, dtype, (add(fibers.size.expr, ONE),))


def _no_ends(fibers: int, dtype: str) -> Array:
    return np.zeros(fibers + 1, dtype)


def store_end(fiber: Expr, end: Expr, dtype: str) -> Store:
    """Return the statement that stores the end of a fiber."""
    return store(ENDS, add(fiber, ONE), end, dtype)


def offsets_of_ends(ends: Array) -> Array:
    """Return the first slots of fibers from the ends of those that have elements; others have the end 0.

    >>> offsets_of_ends(np.array([0, 0, 2, 0, 3]))
    array([0, 0, 2, 2, 3])
    """
    return np.maximum.accumulate(ends)


def starts_of(offsets: Array) -> Array:
    """Return the first slots of fibers, without the number of all slots."""
    return offsets[:-1]
