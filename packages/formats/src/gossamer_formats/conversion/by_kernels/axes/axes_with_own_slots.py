"""Axes that store coordinates and have a slot for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import axes_after
from gossamer_formats.conversion.by_kernels.build_state.build_state import (
    AxisResult,
    BuildState,
    CompressedAxis,
)
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    AppendedAxis,
    BuiltStorage,
    StoredCoordinate,
    ValueSlots,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisSlot,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.fibers.fiber_counts import (
    fiber_counts,
    is_grouped,
    is_sorted,
)
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import (
    ENDS,
    fiber_offsets,
    is_unknown_list,
    list_size,
    new_ends,
    offsets_from_lengths,
    offsets_of_ends,
    starts_of,
    store_end,
)
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size, product_value
from gossamer_formats.conversion.by_kernels.recording.array_scalars import longest_of, sum_of
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.slots.counted_slots import counted_slot
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import sized_slot, take_next
from gossamer_formats.conversion.by_kernels.source.element_loop import VALUE_INDEX
from gossamer_ir.core.axis_kinds import Indptr, indices_of, width_of
from gossamer_ir.core.build import ONE, add, index_var
from gossamer_support.arrays import Array


class _FiberElements(NamedTuple):
    """`keys`: the axes by whose coordinates a fiber is sorted. `are_sequence`: the loop visits the elements
    in the order of their slots."""

    keys: Sequence[str]
    are_sequence: bool


def stored_coordinate(
    state: BuildState, new: CompressedAxis, *, has_unused: bool = False
) -> StoredCoordinate:
    """Return the coordinates along an axis, which the last kernel stores."""
    length = state.sizes.value(new.axis.length)
    largest, unused = (length, length) if has_unused else (length - 1, None)
    return StoredCoordinate(new.name, new.indices.handle, largest, unused)


def add_own_slots(state: BuildState, new: CompressedAxis) -> AxisResult:
    """Return an axis with a slot for each element."""
    axis, indptr = new.axis, new.indptr
    keys = [
        axis.name,
        *(other.name for other in axes_after(state, axis) if indices_of(other)),
    ]
    are_sequence = new.parent.size.value == 1 or is_grouped(state, axis)
    elements = _FiberElements(keys, are_sequence and is_sorted(state, keys))
    counts_values = state.loop.counts_values
    # Appending is tried first: it needs no query, since the last kernel counts what it stores.
    if elements.are_sequence and not counts_values and _takes_any_count(state, new):
        return _append(state, new)
    # A list has no offsets, and its size follows from the elements; the width of other fibers is that of all.
    if indptr is None and is_unknown_list(state, axis):
        return _add_list(state, new, elements)
    if indptr is None:
        return _add_slots_of_width(state, new, elements)
    # Slots are value indices, so that the source and the destination may share arrays.
    if elements.are_sequence and counts_values:
        return _source_axis(state, new, storage=_offsets_in_order(state, indptr, new.parent))
    return _scatter(state, new, indptr, keys)


def _result(
    state: BuildState,
    new: CompressedAxis,
    slot: AxisSlot,
    *,
    slots: ValueSlots,
    elements: ElementBindings | None = None,
    storage: BuiltStorage | None = None,
) -> AxisResult:
    """Return an axis whose coordinates the last kernel stores, in a slot for each element."""
    stored = stored_coordinate(state, new, has_unused=not slots.are_filled)
    stored_storage = BuiltStorage(stored=(stored,), slots=slots._replace(are_own=True))
    return AxisResult(
        slot, elements or ElementBindings(), (storage or BuiltStorage()).extend(stored_storage)
    )


def _takes_any_count(state: BuildState, new: CompressedAxis) -> bool:
    """Return whether an axis may have any number of slots, which stand one after the other."""
    # Extra storage begins after the last slot, which must be known before values are stored.
    if state.description.buffer.extra_storage:
        return False
    if new.indptr is None:
        return is_unknown_list(state, new.axis)
    return new.indptr.nnz is None or not state.sizes.is_known(new.indptr.nnz)


def _append(state: BuildState, new: CompressedAxis) -> AxisResult:
    """Return an axis to which the last kernel appends the elements."""
    appended = AppendedAxis(new.axis, new.indptr, new.parent)
    size = Size(state.loop.size.expr, state.source.value_count)
    slot = AxisSlot(index_var(f"slot_{new.name}"), size)
    return _result(state, new, slot, slots=ValueSlots(are_filled=True, appended=appended))


def _scatter(
    state: BuildState, new: CompressedAxis, indptr: Indptr, keys: Sequence[str]
) -> AxisResult:
    """Return an axis whose fibers are filled side by side."""
    axis, parent, count = new.axis, new.parent, state.source.value_count
    filled = ValueSlots(are_filled=True)
    # If each value is an element, the number of slots is known before they are counted, so that one kernel
    # counts and fills them. Unless they are known to be sorted, a query must check them first.
    if state.loop.visits_all and is_sorted(state, keys):
        counted = counted_slot(state, axis, indptr=indptr, parent=parent)
        slot = sized_slot(state, axis, counted.slot, count)
        slots = filled._replace(are_listed=counted.is_listed)
        return _result(
            state,
            new,
            slot,
            slots=slots,
            elements=counted.elements,
            storage=counted.storage,
        )
    counts = fiber_counts(state, parent, keys)
    offsets = offsets_from_lengths(state, indptr, lengths=counts, most=count)
    starts = state.recorder.compute(starts_of, offsets.array)
    taken = take_next(state, axis.name, fiber=parent, starts=starts)
    slot = sized_slot(state, axis, taken.value, offsets.total)
    elements = ElementBindings(stmts=taken.stmts)
    return _result(state, new, slot, slots=filled, elements=elements, storage=offsets.storage)


def _add_list(state: BuildState, new: CompressedAxis, elements: _FiberElements) -> AxisResult:
    """Return an axis whose only fiber has all elements."""
    axis, parent, recorder = new.axis, new.parent, state.recorder
    _require_slots_of_values(state, parent)
    if elements.are_sequence and state.loop.counts_values:
        counts = list_size(axis, state.source.value_count)
        return _source_axis(state, new, storage=BuiltStorage(slot_counts=counts))
    count = recorder.compute(sum_of, fiber_counts(state, parent, elements.keys))
    starts = recorder.compute(np.zeros, 1, np.int64)
    taken = take_next(state, axis.name, fiber=parent, starts=starts)
    return _result(
        state,
        new,
        sized_slot(state, axis, taken.value, count),
        slots=ValueSlots(are_filled=True),
        elements=ElementBindings(stmts=taken.stmts),
        storage=BuiltStorage(slot_counts=list_size(axis, count)),
    )


def _add_slots_of_width(
    state: BuildState, new: CompressedAxis, elements: _FiberElements
) -> AxisResult:
    """Return an axis with fibers of equal width."""
    axis, parent, recorder = new.axis, new.parent, state.recorder
    counts = fiber_counts(state, parent, elements.keys)
    longest = recorder.decide(longest_of, counts)
    width = state.sizes.bind(width_of(axis), longest)
    if longest > width:
        # NumPy says which fiber has too many.
        raise NotDirectError("a fiber has too many elements")
    _require_slots_of_values(state, parent)
    # Without padding, slots need not be initialized, and may be those of the source.
    is_whole = recorder.decide(_are_all, counts, width)
    if is_whole and elements.are_sequence and state.loop.counts_values:
        return _source_axis(state, new)
    starts = recorder.compute(_starts_of_rows, parent.size.value, width)
    taken = take_next(state, axis.name, fiber=parent, starts=starts)
    slots = product_value(recorder, parent.size.value, width)
    return _result(
        state,
        new,
        sized_slot(state, axis, taken.value, slots),
        slots=ValueSlots(are_filled=is_whole),
        elements=ElementBindings(stmts=taken.stmts),
    )


def _require_slots_of_values(state: BuildState, parent: AxisSlot) -> None:
    """Raise `NotDirectError` if the values of a fiber are not in its slots: an axis is not an ancestor."""
    if parent != state.value_slot:
        raise NotDirectError("the values have other slots than the axis")


def _are_all(counts: Array, width: int) -> bool:
    return bool(np.all(counts == width))


def _starts_of_rows(rows: int, width: int) -> Array:
    return np.arange(rows, dtype=np.int64) * width


def _source_axis(
    state: BuildState, new: CompressedAxis, *, storage: BuiltStorage | None = None
) -> AxisResult:
    """Return an axis whose slots are those of the values of the source."""
    size = Size(state.loop.size.expr, state.source.value_count)
    slots = ValueSlots(are_of_source=True, are_filled=True)
    return _result(state, new, AxisSlot(VALUE_INDEX, size), slots=slots, storage=storage)


def _offsets_in_order(state: BuildState, indptr: Indptr, parent: AxisSlot) -> BuiltStorage:
    """Return the first slot of each fiber, if slots are those of the values of the source."""
    ends = new_ends(state, parent)
    run_query(state, [store_end(parent.slot, add(VALUE_INDEX, ONE), ends.dtype)], {ENDS: ends})
    offsets = state.recorder.compute(offsets_of_ends, ends.array)
    return fiber_offsets(state, indptr, offsets=offsets, dtype=ends.dtype).storage
