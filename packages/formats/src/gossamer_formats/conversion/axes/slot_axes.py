"""Axes that do not occur in the map: they count slots, which a compressed axis below fills."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.axes.built_storage import BuiltStorage, ValueSlots
from gossamer_formats.conversion.axes.element_bindings import (
    AxisCoordinate,
    AxisSlot,
    ElementBindings,
)
from gossamer_formats.conversion.axes.fiber_counts import fiber_counts
from gossamer_formats.conversion.axes.fiber_offsets import dense_fibers
from gossamer_formats.conversion.axes.fiber_ranks import rank_in_fiber
from gossamer_formats.conversion.axes.marked_fibers import marked_fibers
from gossamer_formats.conversion.axes.slots_in_fibers import sized_slot, slot_within, take_next
from gossamer_formats.conversion.axes.target_axes import (
    AxisResult,
    TargetAxes,
    coordinate_along,
    length_of_axis,
)
from gossamer_formats.conversion.maps.axes_between import axes_between
from gossamer_formats.conversion.recording.branch import RecordedValue
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.storage import Array, ancestors
from gossamer_ir.core.axis_kinds import Indptr, indices_of, is_varied, width_of
from gossamer_ir.core.build import ZERO, add, binary, floordiv
from gossamer_ir.nodes import Axis, Expr


class _Below(NamedTuple):
    """The compressed axis whose fibers take the elements, in portions of `width`; `is_shared`: elements may
    share a slot of it. `group`: the fiber within which elements are counted."""

    axis: Axis
    width: int
    is_shared: bool
    group: AxisSlot


def add_slots(axes: TargetAxes, axis: Axis, indptr: Indptr | None) -> AxisResult:
    """Return an axis that does not occur in the map. The compressed axis below takes the elements of a group
    by their ranks, in portions of its width."""
    # Left to NumPy, which knows the longest fiber before it stores any.
    if indptr is None:
        raise NotDirectError("the number of slots is the same in all fibers")
    below, parent = _below(axes, axis), axes.axis_slots[axis.parent]
    ranked = _shared_ranks(axes, below) if below.is_shared else _own_ranks(axes, axis, below)
    lengths = axes.recorder.compute(_portions, ranked.counts, parent.size.value, below.width)
    first, offsets = dense_fibers(axes, axis, indptr=indptr, lengths=lengths)
    size = axes.arguments.constant(f"w_{below.axis.name}", below.width).expr
    portion = floordiv(ranked.rank, size)
    position = ZERO if below.width == 1 else binary("floormod", ranked.rank, size)
    found = ElementBindings({axis.name: AxisCoordinate(portion)}, {below.axis.name: position})
    own = BuiltStorage(slots=ValueSlots(are_own=not below.is_shared))
    return AxisResult(
        sized_slot(axes, axis, add(first, portion), offsets.total),
        ranked.bindings.extended(found),
        offsets.storage.extended(own),
    )


class _Ranked(NamedTuple):
    """The number of slots that each group needs, the rank of an element's slot in its group, and what binds
    it."""

    counts: RecordedValue
    rank: Expr
    bindings: ElementBindings


def _own_ranks(axes: TargetAxes, axis: Axis, below: _Below) -> _Ranked:
    """Return the ranks of elements that have a slot each: they are counted."""
    counts = fiber_counts(axes, below.group, [below.axis.name])
    starts = axes.recorder.compute(np.zeros, below.group.size.value, np.int32)
    taken = take_next(axes, axis.name, fiber=below.group, starts=starts)
    return _Ranked(counts, taken.value, ElementBindings(statements=taken.statements))


def _shared_ranks(axes: TargetAxes, below: _Below) -> _Ranked:
    """Return the ranks of elements that share slots: those of their coordinates."""
    fibers = marked_fibers(axes, below.axis, below.group)
    found = rank_in_fiber(axes, below.axis, parent=below.group, fibers=fibers)
    counts = axes.recorder.compute(np.diff, fibers.offsets)
    return _Ranked(counts, found.rank, found.bindings)


def _portions(counts: Array, parents: int, width: int) -> Array:
    """Return how many portions the largest group of each fiber has.

    >>> _portions(np.array([3, 5, 1, 0]), 2, 2)
    array([3, 1])
    """
    portions = -(-counts.reshape(parents, counts.size // max(parents, 1)) // width)
    found: Array = portions.max(axis=1, initial=0)
    return found


def _below(axes: TargetAxes, axis: Axis) -> _Below:
    """Return the last axis, if it stores coordinates in fibers of fixed width below an axis."""
    below = axes.by_name[axes.description.buffer.axes[-1]]
    indices = indices_of(below)
    if axis.name not in ancestors(axes.by_name, below.name):
        raise NotDirectError("the last axis is not below the slots")
    if indices is None or is_varied(below) or not axes.sizes.is_known(width_of(below)):
        raise NotDirectError("no compressed axis of fixed width takes the elements of the slots")
    between = axes_between(axes.by_name, axis, below)
    above = ancestors(axes.by_name, axis.name)
    others = set(axes.by_name) - {axis.name, below.name, *between, *above}
    is_shared = not all(_is_single(axes, axes.by_name[name]) for name in others)
    are_dense = all(
        indices_of(axes.by_name[name]) is None
        and not is_varied(axes.by_name[name])
        and name in axes.elements.coordinates
        for name in between
    )
    if not are_dense or (is_shared and not indices.unique):
        raise NotDirectError("the axes between the slots and those that are stored are not dense")
    width = axes.sizes.value(width_of(below))
    return _Below(below, width, is_shared, _group(axes, axis, between))


def _is_single(axes: TargetAxes, axis: Axis) -> bool:
    """Return whether an axis has one coordinate."""
    return axes.sizes.is_known(axis.length) and axes.sizes.value(axis.length) == 1


def _group(axes: TargetAxes, axis: Axis, between: list[str]) -> AxisSlot:
    """Return the fiber within which elements are counted."""
    group = axes.axis_slots[axis.parent]
    for name in between:
        group = slot_within(
            axes,
            f"N_{axis.name}_{name}",
            outer=group,
            position=coordinate_along(axes, name),
            width=length_of_axis(axes, axes.by_name[name]),
        )
    return group
