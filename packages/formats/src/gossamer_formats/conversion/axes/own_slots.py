"""Axes that store coordinates and have a slot for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.axes.bind_slots import bind_value_slot, take_next
from gossamer_formats.conversion.axes.counted_slots import take_counted
from gossamer_formats.conversion.axes.fiber_counts import (
    fiber_counts,
    is_grouped,
    is_sorted,
)
from gossamer_formats.conversion.axes.fiber_offsets import (
    ENDS,
    add_offsets,
    ends_argument,
    is_unknown_list,
    no_ends,
    offsets_of_ends,
    set_list_size,
    set_offsets,
    starts_of,
    store_end,
)
from gossamer_formats.conversion.axes.target_axes import (
    Appended,
    AxisSlot,
    StoredCoordinate,
    TargetAxes,
    axes_after,
    run_query,
)
from gossamer_formats.conversion.kernels.shared_arguments import product_value
from gossamer_formats.conversion.recording.array_scalars import (
    longest_of,
    sum_of,
)
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.conversion.source.element_loop import VALUE_INDEX
from gossamer_formats.conversion.target.dtypes import native_index_dtype
from gossamer_formats.storage import Array
from gossamer_ir.core.axis_kinds import Indices, Indptr, indices_of, width_of
from gossamer_ir.core.build import ONE, add, index_var
from gossamer_ir.nodes import Axis


class _Elements(NamedTuple):
    """`keys`: the axes by whose coordinates a fiber is sorted. `are_sequence`: the loop visits the elements
    in the order of their slots."""

    keys: Sequence[str]
    are_sequence: bool


def store_coordinate(
    state: TargetAxes, axis: Axis, indices: Indices, *, has_unused: bool = False
) -> None:
    """Let the last kernel store the coordinates along an axis."""
    length = state.sizes.value(axis.length)
    largest, unused = (length, length) if has_unused else (length - 1, None)
    state.stored.append(StoredCoordinate(axis.name, indices.handle, largest, unused))


def add_own_slots(
    state: TargetAxes, axis: Axis, indptr: Indptr | None, indices: Indices, parent: AxisSlot
) -> None:
    """Add an axis with a slot for each element."""
    keys = [axis.name, *(other.name for other in axes_after(state, axis) if indices_of(other))]
    state.slots = state.slots._replace(are_own=True)
    are_sequence = parent.size.value == 1 or is_grouped(state, axis)
    elements = _Elements(keys, are_sequence and is_sorted(state, keys))
    counts_values = state.loop.counts_values
    if elements.are_sequence and not counts_values and _takes_any_count(state, axis, indptr):
        _append(state, axis, indptr, indices, parent)
    elif indptr is None and is_unknown_list(state, axis):
        _add_list(state, axis, indices, parent, elements)
    elif indptr is None:
        _add_slots_of_width(state, axis, indices, parent, elements)
    elif elements.are_sequence and counts_values:
        _set_offsets_in_order(state, indptr, parent)
        _add_slots_of_source(state, axis, indices)
    else:
        _scatter(state, axis, indptr, indices, parent, keys)


def _takes_any_count(state: TargetAxes, axis: Axis, indptr: Indptr | None) -> bool:
    """Return whether an axis may have any number of slots, which stand one after the other."""
    if state.description.buffer.extra_storage:
        return False
    if indptr is None:
        return is_unknown_list(state, axis)
    return indptr.nnz is None or not state.sizes.is_known(indptr.nnz)


def _append(
    state: TargetAxes, axis: Axis, indptr: Indptr | None, indices: Indices, parent: AxisSlot
) -> None:
    """Add an axis to which the last kernel appends the elements."""
    appended = Appended(axis, indptr, parent)
    state.slots = state.slots._replace(are_filled=True, appended=appended)
    count, size = state.source.value_count, state.loop.size.expr
    bind_value_slot(state, axis, index_var(f"slot_{axis.name}"), count, size)
    store_coordinate(state, axis, indices)


def _scatter(
    state: TargetAxes,
    axis: Axis,
    indptr: Indptr,
    indices: Indices,
    parent: AxisSlot,
    keys: Sequence[str],
) -> None:
    """Add an axis whose fibers are filled side by side."""
    state.slots = state.slots._replace(are_filled=True)
    if state.loop.visits_all and is_sorted(state, keys):
        slot, count = take_counted(state, axis, indptr, parent), state.source.value_count
        bind_value_slot(state, axis, slot, count)
        store_coordinate(state, axis, indices)
        return
    counts = fiber_counts(state, parent, keys)
    offsets = add_offsets(state, indptr, counts, state.source.value_count)
    starts = state.recorder.compute(starts_of, offsets.array)
    slot = take_next(state, axis.name, parent, starts)
    assert offsets.largest is not None
    bind_value_slot(state, axis, slot, offsets.largest)
    store_coordinate(state, axis, indices)


def _add_list(
    state: TargetAxes, axis: Axis, indices: Indices, parent: AxisSlot, elements: _Elements
) -> None:
    """Add an axis whose only fiber has all elements."""
    if parent != state.value_slot:
        raise NotDirectError("the values have other slots than the axis")
    if elements.are_sequence and state.loop.counts_values:
        set_list_size(state, axis, state.source.value_count)
        _add_slots_of_source(state, axis, indices)
        return
    recorder = state.recorder
    count = recorder.compute(sum_of, fiber_counts(state, parent, elements.keys))
    set_list_size(state, axis, count)
    state.slots = state.slots._replace(are_filled=True)
    slot = take_next(state, axis.name, parent, recorder.compute(np.zeros, 1, np.int64))
    bind_value_slot(state, axis, slot, count)
    store_coordinate(state, axis, indices)


def _add_slots_of_width(
    state: TargetAxes, axis: Axis, indices: Indices, parent: AxisSlot, elements: _Elements
) -> None:
    """Add an axis with fibers of equal width."""
    recorder = state.recorder
    is_copied = elements.are_sequence and state.loop.counts_values
    counts = fiber_counts(state, parent, elements.keys)
    longest = recorder.decide(longest_of, counts)
    width = state.sizes.bind(width_of(axis), longest)
    if longest > width:
        raise NotDirectError("a fiber has too many elements")
    if parent != state.value_slot:
        raise NotDirectError("the values have other slots than the axis")
    is_whole = recorder.decide(_are_all, counts, width)
    if is_whole and is_copied:
        _add_slots_of_source(state, axis, indices)
        return
    state.slots = state.slots._replace(are_filled=is_whole)
    starts = recorder.compute(_starts_of_rows, parent.size.value, width)
    slot = take_next(state, axis.name, parent, starts)
    slots = product_value(recorder, parent.size.value, width)
    bind_value_slot(state, axis, slot, slots)
    store_coordinate(state, axis, indices, has_unused=not is_whole)


def _are_all(counts: Array, width: int) -> bool:
    return bool(np.all(counts == width))


def _starts_of_rows(rows: int, width: int) -> Array:
    return np.arange(rows, dtype=np.int64) * width


def _add_slots_of_source(state: TargetAxes, axis: Axis, indices: Indices) -> None:
    """Add an axis whose slots are those of the values of the source."""
    state.slots = state.slots._replace(are_of_source=True, are_filled=True)
    bind_value_slot(state, axis, VALUE_INDEX, state.source.value_count, state.loop.size.expr)
    store_coordinate(state, axis, indices)


def _set_offsets_in_order(state: TargetAxes, indptr: Indptr, parent: AxisSlot) -> None:
    """Find the first slot of each fiber, if slots are those of the values of the source."""
    recorder = state.recorder
    dtype = recorder.decide(native_index_dtype, state.source.value_count)
    ends = recorder.compute(no_ends, parent.size.value, dtype)
    query = {ENDS: ends_argument(ends, dtype, parent.size)}
    run_query(state, [store_end(parent.slot, add(VALUE_INDEX, ONE), dtype)], query)
    set_offsets(state, indptr, recorder.compute(offsets_of_ends, ends), dtype)
