"""Axes that do not occur in the map: they number slots, which a compressed axis below fills."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.compiled.assembly_state import AssemblyState, NotDirectError, Place
from gossamer_formats.conversion.compiled.fiber_counts import fiber_counts
from gossamer_formats.conversion.compiled.marked_fibers import add_ranks, marked_fibers
from gossamer_formats.storage import ancestors
from gossamer_ir.core.axis_kinds import Indptr, indices_of, is_varied, width_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Axis


def add_slots(state: AssemblyState, axis: Axis, indptr: Indptr | None) -> None:
    """Add an axis that does not occur in the map, and bind the number of the element among those of its
    group, which the compressed axis below takes in portions of its width."""
    below = _stored_below(state, axis)
    if below is None or indptr is None:
        raise NotDirectError("no compressed axis of fixed width takes the elements of the slots")
    parent = state.places[axis.parent]
    group = parent
    for name in _between(state, axis, below.axis):
        width = state.sizes.value(state.axes[name].length)
        size = state.length(state.axes[name])
        text = f"({group.text}) * {size} + {state.coordinates[name]}"
        count = group.slots * width
        group = Place(text, count, state.integer(f"N_{axis.name}_{name}", count))
    width = state.sizes.value(width_of(below.axis))
    if below.is_shared:
        fibers = marked_fibers(state, below.axis, group)
        counts = np.diff(fibers.offsets)
    else:
        counts = fiber_counts(state, group, [below.axis.name])
    portions = -(-counts.reshape(parent.slots, group.slots // max(parent.slots, 1)) // width)
    lengths = portions.max(axis=1, initial=0)
    longest = int(lengths.max(initial=0))
    if state.sizes.bind(axis.length, longest) < longest:
        raise NotDirectError("a fiber is too long")
    offsets = state.add_offsets(indptr, lengths)
    at = state.pass_offsets(axis, offsets, parent).format(parent.text)
    if below.is_shared:
        rank = add_ranks(state, axis, group, fibers, state.coordinates[below.axis.name])
    else:
        state.in_own_slot = True
        rank = state.take(axis.name, group, np.zeros(group.slots, np.int32))
    size = state.width(below.axis.name, width)
    state.coordinates[axis.name] = rank if width == 1 else f"{rank} // {size}"
    state.coordinates[f"{below.axis.name} slot"] = "0" if width == 1 else f"{rank} % {size}"
    state.set_varied(axis, f"{at} + {state.coordinates[axis.name]}", int(offsets[-1]))


class _Below(NamedTuple):
    """The compressed axis whose fibers take the elements; `is_shared`: elements may share a slot of it."""

    axis: Axis
    is_shared: bool


def _stored_below(state: AssemblyState, axis: Axis) -> _Below | None:
    """Return the last axis, if it stores coordinates in fibers of fixed width below an axis."""
    below = state.axes[state.description.buffer.axes[-1]]
    indices = indices_of(below)
    if indices is None or is_varied(below) or not state.sizes.is_known(width_of(below)):
        return None
    between = _between(state, axis, below)
    others = set(state.axes) - {
        axis.name,
        below.name,
        *between,
        *ancestors(state.axes, axis.name),
    }
    is_shared = any(integer_value(state.axes[name].length) != 1 for name in others)
    if is_shared and (between or not indices.unique):
        return None
    is_dense = all(
        indices_of(state.axes[name]) is None
        and not is_varied(state.axes[name])
        and name in state.coordinates
        for name in between
    )
    return _Below(below, is_shared) if is_dense else None


def _between(state: AssemblyState, axis: Axis, below: Axis) -> list[str]:
    """Return the names of the axes between an axis and one below it, from the outermost."""
    names: list[str] = []
    parent = below.parent
    while parent is not None and parent != axis.name:
        names.insert(0, parent)
        parent = state.axes[parent].parent
    if parent is None:
        raise NotDirectError("the last axis is not below the slots")
    return names
