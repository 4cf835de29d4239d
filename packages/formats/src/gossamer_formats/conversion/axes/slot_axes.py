"""Axes that do not occur in the map: they count slots, which a compressed axis below fills."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.axes.bind_slots import bind_value_slot, slot_within, take_next
from gossamer_formats.conversion.axes.fiber_counts import fiber_counts
from gossamer_formats.conversion.axes.fiber_offsets import add_offsets, pass_offsets
from gossamer_formats.conversion.axes.fiber_ranks import add_ranks
from gossamer_formats.conversion.axes.marked_fibers import marked_fibers
from gossamer_formats.conversion.axes.target_axes import AxisSlot, TargetAxes, length_of
from gossamer_formats.conversion.maps.axes_between import axes_between
from gossamer_formats.conversion.recording.array_scalars import (
    longest_of,
    sum_of,
)
from gossamer_formats.conversion.recording.branch import RecordedValue
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.storage import Array, ancestors
from gossamer_ir.core.axis_kinds import Indptr, indices_of, is_varied, width_of
from gossamer_ir.core.build import ZERO, add, binary, floordiv, integer_value
from gossamer_ir.nodes import Axis, Expr


class _Below(NamedTuple):
    """The compressed axis whose fibers take the elements, in portions of `width`; `is_shared`: elements may
    share a slot of it. `group`: the fiber within which elements are counted."""

    axis: Axis
    width: int
    is_shared: bool
    group: AxisSlot


def add_slots(state: TargetAxes, axis: Axis, indptr: Indptr | None) -> None:
    """Add an axis that does not occur in the map, and bind the rank of the element among those of its
    group, which the compressed axis below takes in portions of its width."""
    if indptr is None:
        raise NotDirectError("the number of slots is the same in all fibers")
    below, parent, recorder = _below(state, axis), state.axis_slots[axis.parent], state.recorder
    counts, rank = _counts_and_rank(state, axis, below)
    lengths = recorder.compute(_portions, counts, parent.size.value, below.width)
    longest = recorder.decide(longest_of, lengths)
    if state.sizes.bind(axis.length, longest) < longest:
        raise NotDirectError("a fiber is too long")
    offsets = add_offsets(state, indptr, lengths, recorder.compute(sum_of, lengths))
    first = pass_offsets(state, axis, offsets, parent)
    if rank is None:
        state.slots = state.slots._replace(are_own=True)
        starts = recorder.compute(np.zeros, below.group.size.value, np.int32)
        rank = take_next(state, axis.name, below.group, starts)
    size = state.arguments.constant(f"w_{below.axis.name}", below.width).expr
    state.coordinates[axis.name] = floordiv(rank, size)
    position = ZERO if below.width == 1 else binary("floormod", rank, size)
    state.positions[below.axis.name] = position
    assert offsets.largest is not None
    slot = add(first, state.coordinates[axis.name])
    bind_value_slot(state, axis, slot, offsets.largest)


def _counts_and_rank(
    state: TargetAxes, axis: Axis, below: _Below
) -> tuple[RecordedValue, Expr | None]:
    """Return how many slots each group needs, and the rank of the element's slot if some share one."""
    if not below.is_shared:
        return fiber_counts(state, below.group, [below.axis.name]), None
    fibers = marked_fibers(state, below.axis, below.group)
    rank = add_ranks(state, below.axis, below.group, fibers)
    return state.recorder.compute(np.diff, fibers.offsets), rank


def _portions(counts: Array, parents: int, width: int) -> Array:
    """Return how many portions the largest group of each fiber has.

    >>> _portions(np.array([3, 5, 1, 0]), 2, 2)
    array([3, 1])
    """
    portions = -(-counts.reshape(parents, counts.size // max(parents, 1)) // width)
    found: Array = portions.max(axis=1, initial=0)
    return found


def _below(state: TargetAxes, axis: Axis) -> _Below:
    """Return the last axis, if it stores coordinates in fibers of fixed width below an axis."""
    below = state.axes[state.description.buffer.axes[-1]]
    indices = indices_of(below)
    if axis.name not in ancestors(state.axes, below.name):
        raise NotDirectError("the last axis is not below the slots")
    if indices is None or is_varied(below) or not state.sizes.is_known(width_of(below)):
        raise NotDirectError("no compressed axis of fixed width takes the elements of the slots")
    between = axes_between(state.axes, axis, below)
    above = ancestors(state.axes, axis.name)
    others = set(state.axes) - {axis.name, below.name, *between, *above}
    is_shared = any(integer_value(state.axes[name].length) != 1 for name in others)
    are_dense = all(
        indices_of(state.axes[name]) is None
        and not is_varied(state.axes[name])
        and name in state.coordinates
        for name in between
    )
    if not are_dense or (is_shared and (between or not indices.unique)):
        raise NotDirectError("the axes between the slots and those that are stored are not dense")
    width = state.sizes.value(width_of(below))
    return _Below(below, width, is_shared, _group(state, axis, between))


def _group(state: TargetAxes, axis: Axis, between: list[str]) -> AxisSlot:
    """Return the fiber within which elements are counted."""
    group = state.axis_slots[axis.parent]
    for name in between:
        size = length_of(state, state.axes[name])
        group = slot_within(state, f"N_{axis.name}_{name}", group, state.coordinates[name], size)
    return group
