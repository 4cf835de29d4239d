"""The ranks of elements' slots among those of a group, which an axis above takes in sub-fibers.

A coordinate that an axis may repeat has a slot for each sub-fiber of the elements below it: the ranks there
are those of its sub-fibers, after the sub-fibers of all smaller coordinates of the group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.axis_order import ancestors, axes_between
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    coordinate_along,
    length_of_axis,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisSlot,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.fibers.fiber_coordinates import fiber_coordinates
from gossamer_formats.conversion.by_kernels.fibers.fiber_counts import fiber_counts
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import offsets_of_lengths
from gossamer_formats.conversion.by_kernels.fibers.fiber_ranks import rank_in_fiber
from gossamer_formats.conversion.by_kernels.kernels.statements import load
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import slot_within, take_next
from gossamer_formats.conversion.destination.dtypes import native_index_dtype
from gossamer_ir.core.axis_kinds import indices_of, is_varied, width_of
from gossamer_ir.core.build import ONE, ZERO, add, binary, floordiv, mul, sub
from gossamer_ir.nodes import Axis, Expr
from gossamer_support.arrays import Array


class SlotRanks(NamedTuple):
    """The number of slots that each group needs, the rank of an element's slot in its group, and what binds
    it. `are_own`: each element has a slot of its own."""

    counts: RecordedValue
    rank: Expr
    bindings: ElementBindings
    are_own: bool


class SubFibers(NamedTuple):
    """The compressed axis whose fibers take the elements of a group in sub-fibers of `width`, and the ranks
    of its slots."""

    axis: Axis
    width: int
    ranks: SlotRanks
    sub_fiber: Expr
    position: Expr

    @property
    def bindings(self) -> ElementBindings:
        """The statements that bind the rank, and the position of the element in its sub-fiber."""
        return self.ranks.bindings.extend(
            ElementBindings(positions={self.axis.name: self.position})
        )


def sub_fibers_below(state: BuildState, axis: Axis, fiber: AxisSlot) -> SubFibers:
    """Return the sub-fibers in which the compressed axis below one takes the elements of a fiber."""
    below = _axis_of_sub_fibers(state, axis)
    if below is None:
        raise NotDirectError("no compressed axis of fixed width takes the elements of the slots")
    width = state.sizes.value(width_of(below))
    ranks = _slot_ranks(state, below, _group(state, axis, below, fiber))
    size = state.arguments.constant(f"w_{below.name}", width).expr
    position = ZERO if width == 1 else binary("floormod", ranks.rank, size)
    return SubFibers(below, width, ranks, floordiv(ranks.rank, size), position)


def is_repeated(state: BuildState, axis: Axis) -> bool:
    """Return whether a compressed axis stores a coordinate once for each sub-fiber of its elements."""
    indices = indices_of(axis)
    return (
        indices is not None and not indices.unique and _axis_of_sub_fibers(state, axis) is not None
    )


def _axis_of_sub_fibers(state: BuildState, axis: Axis) -> Axis | None:
    """Return the next compressed axis of fixed width below an axis; None if there is none, or if its width is
    that of its longest fiber."""
    for name in state.description.buffer.axes:
        below = state.by_name[name]
        is_below = axis.name in ancestors(state.by_name, name)
        if is_below and indices_of(below) is not None and not is_varied(below):
            return below if state.sizes.is_known(width_of(below)) else None
    return None


class RepeatedSlots(NamedTuple):
    """The slots of coordinates that may be repeated: the rank of an element's slot among those of its group,
    the slot of all groups one after the other, the first slots of groups, and what binds the slots."""

    rank: Expr
    slot: Expr
    offsets: RecordedValue
    dtype: str
    bindings: ElementBindings
    are_own: bool


def repeated_slots(state: BuildState, axis: Axis, group: AxisSlot) -> RepeatedSlots:
    """Return the slots of an axis that stores a coordinate once for each sub-fiber of its elements."""
    name, recorder, length = (
        axis.name,
        state.recorder,
        length_of_axis(state, axis),
    )
    coordinate = coordinate_along(state, name)
    coordinate_slot = slot_within(
        state, f"N_each_{name}", outer=group, position=coordinate, width=length
    )
    below = sub_fibers_below(state, axis, coordinate_slot)
    dtype = recorder.decide(native_index_dtype, state.source.value_count)
    fibers = coordinate_slot.size.value
    counts = recorder.compute(max_sub_fibers, below.ranks.counts, fibers, below.width)
    starts = recorder.compute(offsets_of_lengths, counts, dtype)
    array = f"SUB_FIBERS_{name}"
    state.arguments.array(array, starts, dtype, add(coordinate_slot.size.expr, ONE))
    slot = add(load(array, coordinate_slot.slot, dtype), below.sub_fiber)
    first = load(array, mul(group.slot, length.expr), dtype)
    offsets = recorder.compute(_every, starts, length.value)
    return RepeatedSlots(
        sub(slot, first), slot, offsets, dtype, below.bindings, below.ranks.are_own
    )


def _every(starts: Array, step: int) -> Array:
    """Return the first of each `step` starts, and the end."""
    # Kernels take contiguous arrays only.
    return np.ascontiguousarray(starts[::step]) if step else np.zeros(1, starts.dtype)


def max_sub_fibers(counts: Array, fibers: int, width: int) -> Array:
    """Return how many sub-fibers the largest group of each fiber has.

    >>> max_sub_fibers(np.array([3, 5, 1, 0]), 2, 2)
    array([3, 1])
    """
    sub_fibers = -(-counts.reshape(fibers, counts.size // max(fibers, 1)) // width)
    largest: Array = sub_fibers.max(axis=1, initial=0)
    return largest


def _slot_ranks(state: BuildState, axis: Axis, group: AxisSlot) -> SlotRanks:
    """Return the ranks of the slots of a compressed axis of fixed width in groups."""
    indices = indices_of(axis)
    assert indices is not None
    if is_repeated(state, axis):
        repeated = repeated_slots(state, axis, group)
        counts = state.recorder.compute(np.diff, repeated.offsets)
        return SlotRanks(counts, repeated.rank, repeated.bindings, repeated.are_own)
    if axis.name != state.description.buffer.axes[-1]:
        raise NotDirectError("the last axis is not below the slots")
    if _has_own_slots(state, axis):
        return _own_ranks(state, axis, group)
    if not indices.unique:
        raise NotDirectError("elements share slots that are repeated")
    return _shared_ranks(state, axis, group)


def _has_own_slots(state: BuildState, axis: Axis) -> bool:
    """Return whether each element has a slot of the last axis: all others are above it, or have one
    coordinate."""
    above = {axis.name, *ancestors(state.by_name, axis.name)}
    return all(_is_single(state, state.by_name[name]) for name in set(state.by_name) - above)


def _is_single(state: BuildState, axis: Axis) -> bool:
    """Return whether an axis has one coordinate."""
    return state.sizes.is_known(axis.length) and state.sizes.value(axis.length) == 1


def _own_ranks(state: BuildState, axis: Axis, group: AxisSlot) -> SlotRanks:
    """Return the ranks of elements that have a slot each: they are counted."""
    counts = fiber_counts(state, group, [axis.name])
    starts = state.recorder.compute(np.zeros, group.size.value, np.int32)
    taken = take_next(state, axis.name, fiber=group, starts=starts)
    bindings = ElementBindings(stmts=taken.stmts)
    return SlotRanks(counts, taken.value, bindings, are_own=True)


def _shared_ranks(state: BuildState, axis: Axis, group: AxisSlot) -> SlotRanks:
    """Return the ranks of elements that share slots: those of their coordinates."""
    fibers = fiber_coordinates(state, axis, group, are_sorted=True)
    ranked = rank_in_fiber(state, axis, parent=group, fibers=fibers)
    counts = state.recorder.compute(np.diff, fibers.offsets)
    return SlotRanks(counts, ranked.rank, ranked.bindings, are_own=False)


def _group(state: BuildState, axis: Axis, below: Axis, fiber: AxisSlot) -> AxisSlot:
    """Return the fiber within which elements are counted: that of the dense axes between two axes."""
    group = fiber
    for name in axes_between(state.by_name, axis, below):
        between = state.by_name[name]
        is_dense = indices_of(between) is None and not is_varied(between)
        if not is_dense or name not in state.elements.coordinates:
            raise NotDirectError(
                "the axes between the slots and those that are stored are not dense"
            )
        group = slot_within(
            state,
            f"N_{axis.name}_{name}",
            outer=group,
            position=coordinate_along(state, name),
            width=length_of_axis(state, between),
        )
    return group
