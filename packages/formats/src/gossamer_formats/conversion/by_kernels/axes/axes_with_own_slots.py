"""Axes that store coordinates and have a slot for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    AppendedAxis,
    BuiltStorage,
    StoredCoordinate,
    ValueSlots,
)
from gossamer_formats.conversion.by_kernels.build_state.destination_axes import (
    AxisResult,
    CompressedAxis,
    DestinationAxes,
    axes_after,
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
from gossamer_ir.support.arrays import Array


class _FiberElements(NamedTuple):
    """`keys`: the axes by whose coordinates a fiber is sorted. `are_sequence`: the loop visits the elements
    in the order of their slots."""

    keys: Sequence[str]
    are_sequence: bool


def stored_coordinate(
    destination_axes: DestinationAxes, new: CompressedAxis, *, has_unused: bool = False
) -> StoredCoordinate:
    """Return the coordinates along an axis, which the last kernel stores."""
    length = destination_axes.sizes.value(new.axis.length)
    largest, unused = (length, length) if has_unused else (length - 1, None)
    return StoredCoordinate(new.name, new.indices.handle, largest, unused)


def add_own_slots(destination_axes: DestinationAxes, new: CompressedAxis) -> AxisResult:
    """Return an axis with a slot for each element."""
    axis, indptr = new.axis, new.indptr
    keys = [
        axis.name,
        *(other.name for other in axes_after(destination_axes, axis) if indices_of(other)),
    ]
    are_sequence = new.parent.size.value == 1 or is_grouped(destination_axes, axis)
    elements = _FiberElements(keys, are_sequence and is_sorted(destination_axes, keys))
    counts_values = destination_axes.loop.counts_values
    # Appending is tried first: it needs no query, since the last kernel counts what it stores.
    if elements.are_sequence and not counts_values and _takes_any_count(destination_axes, new):
        return _append(destination_axes, new)
    # A list has no offsets, and its size follows from the elements; the width of other fibers is that of all.
    if indptr is None and is_unknown_list(destination_axes, axis):
        return _add_list(destination_axes, new, elements)
    if indptr is None:
        return _add_slots_of_width(destination_axes, new, elements)
    # Slots are value indices, so that the source and the destination may share arrays.
    if elements.are_sequence and counts_values:
        return _source_axis(
            destination_axes, new, storage=_offsets_in_order(destination_axes, indptr, new.parent)
        )
    return _scatter(destination_axes, new, indptr, keys)


def _result(
    destination_axes: DestinationAxes,
    new: CompressedAxis,
    slot: AxisSlot,
    *,
    slots: ValueSlots,
    elements: ElementBindings | None = None,
    storage: BuiltStorage | None = None,
) -> AxisResult:
    """Return an axis whose coordinates the last kernel stores, in a slot for each element."""
    stored = stored_coordinate(destination_axes, new, has_unused=not slots.are_filled)
    stored_storage = BuiltStorage(stored=(stored,), slots=slots._replace(are_own=True))
    return AxisResult(
        slot, elements or ElementBindings(), (storage or BuiltStorage()).extend(stored_storage)
    )


def _takes_any_count(destination_axes: DestinationAxes, new: CompressedAxis) -> bool:
    """Return whether an axis may have any number of slots, which stand one after the other."""
    # Extra storage begins after the last slot, which must be known before values are stored.
    if destination_axes.description.buffer.extra_storage:
        return False
    if new.indptr is None:
        return is_unknown_list(destination_axes, new.axis)
    return new.indptr.nnz is None or not destination_axes.sizes.is_known(new.indptr.nnz)


def _append(destination_axes: DestinationAxes, new: CompressedAxis) -> AxisResult:
    """Return an axis to which the last kernel appends the elements."""
    appended = AppendedAxis(new.axis, new.indptr, new.parent)
    size = Size(destination_axes.loop.size.expr, destination_axes.source.value_count)
    slot = AxisSlot(index_var(f"slot_{new.name}"), size)
    return _result(
        destination_axes, new, slot, slots=ValueSlots(are_filled=True, appended=appended)
    )


def _scatter(
    destination_axes: DestinationAxes, new: CompressedAxis, indptr: Indptr, keys: Sequence[str]
) -> AxisResult:
    """Return an axis whose fibers are filled side by side."""
    axis, parent, count = new.axis, new.parent, destination_axes.source.value_count
    filled = ValueSlots(are_filled=True)
    # If each value is an element, the number of slots is known before they are counted, so that one kernel
    # counts and fills them. Unless they are known to be sorted, a query must check them first.
    if destination_axes.loop.visits_all and is_sorted(destination_axes, keys):
        counted = counted_slot(destination_axes, axis, indptr=indptr, parent=parent)
        slot = sized_slot(destination_axes, axis, counted.slot, count)
        slots = filled._replace(are_listed=counted.is_listed)
        return _result(
            destination_axes,
            new,
            slot,
            slots=slots,
            elements=counted.elements,
            storage=counted.storage,
        )
    counts = fiber_counts(destination_axes, parent, keys)
    offsets = offsets_from_lengths(destination_axes, indptr, lengths=counts, most=count)
    starts = destination_axes.recorder.compute(starts_of, offsets.array)
    taken = take_next(destination_axes, axis.name, fiber=parent, starts=starts)
    slot = sized_slot(destination_axes, axis, taken.value, offsets.total)
    elements = ElementBindings(stmts=taken.stmts)
    return _result(
        destination_axes, new, slot, slots=filled, elements=elements, storage=offsets.storage
    )


def _add_list(
    destination_axes: DestinationAxes, new: CompressedAxis, elements: _FiberElements
) -> AxisResult:
    """Return an axis whose only fiber has all elements."""
    axis, parent, recorder = new.axis, new.parent, destination_axes.recorder
    _require_slots_of_values(destination_axes, parent)
    if elements.are_sequence and destination_axes.loop.counts_values:
        counts = list_size(axis, destination_axes.source.value_count)
        return _source_axis(destination_axes, new, storage=BuiltStorage(slot_counts=counts))
    count = recorder.compute(sum_of, fiber_counts(destination_axes, parent, elements.keys))
    starts = recorder.compute(np.zeros, 1, np.int64)
    taken = take_next(destination_axes, axis.name, fiber=parent, starts=starts)
    return _result(
        destination_axes,
        new,
        sized_slot(destination_axes, axis, taken.value, count),
        slots=ValueSlots(are_filled=True),
        elements=ElementBindings(stmts=taken.stmts),
        storage=BuiltStorage(slot_counts=list_size(axis, count)),
    )


def _add_slots_of_width(
    destination_axes: DestinationAxes, new: CompressedAxis, elements: _FiberElements
) -> AxisResult:
    """Return an axis with fibers of equal width."""
    axis, parent, recorder = new.axis, new.parent, destination_axes.recorder
    counts = fiber_counts(destination_axes, parent, elements.keys)
    longest = recorder.decide(longest_of, counts)
    width = destination_axes.sizes.bind(width_of(axis), longest)
    if longest > width:
        # NumPy says which fiber has too many.
        raise NotDirectError("a fiber has too many elements")
    _require_slots_of_values(destination_axes, parent)
    # Without padding, slots need not be initialized, and may be those of the source.
    is_whole = recorder.decide(_are_all, counts, width)
    if is_whole and elements.are_sequence and destination_axes.loop.counts_values:
        return _source_axis(destination_axes, new)
    starts = recorder.compute(_starts_of_rows, parent.size.value, width)
    taken = take_next(destination_axes, axis.name, fiber=parent, starts=starts)
    slots = product_value(recorder, parent.size.value, width)
    return _result(
        destination_axes,
        new,
        sized_slot(destination_axes, axis, taken.value, slots),
        slots=ValueSlots(are_filled=is_whole),
        elements=ElementBindings(stmts=taken.stmts),
    )


def _require_slots_of_values(destination_axes: DestinationAxes, parent: AxisSlot) -> None:
    """Raise `NotDirectError` if the values of a fiber are not in its slots: an axis is not an ancestor."""
    if parent != destination_axes.value_slot:
        raise NotDirectError("the values have other slots than the axis")


def _are_all(counts: Array, width: int) -> bool:
    return bool(np.all(counts == width))


def _starts_of_rows(rows: int, width: int) -> Array:
    return np.arange(rows, dtype=np.int64) * width


def _source_axis(
    destination_axes: DestinationAxes, new: CompressedAxis, *, storage: BuiltStorage | None = None
) -> AxisResult:
    """Return an axis whose slots are those of the values of the source."""
    size = Size(destination_axes.loop.size.expr, destination_axes.source.value_count)
    slots = ValueSlots(are_of_source=True, are_filled=True)
    return _result(destination_axes, new, AxisSlot(VALUE_INDEX, size), slots=slots, storage=storage)


def _offsets_in_order(
    destination_axes: DestinationAxes, indptr: Indptr, parent: AxisSlot
) -> BuiltStorage:
    """Return the first slot of each fiber, if slots are those of the values of the source."""
    ends = new_ends(destination_axes, parent)
    run_query(
        destination_axes, [store_end(parent.slot, add(VALUE_INDEX, ONE), ends.dtype)], {ENDS: ends}
    )
    offsets = destination_axes.recorder.compute(offsets_of_ends, ends.array)
    return fiber_offsets(destination_axes, indptr, offsets=offsets, dtype=ends.dtype).storage
