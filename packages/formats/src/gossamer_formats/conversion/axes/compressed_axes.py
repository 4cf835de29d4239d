"""Axes that store coordinates: which of the ways to build them suits."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.axes.bind_slots import bind_value_slot
from gossamer_formats.conversion.axes.bit_axes import add_bits
from gossamer_formats.conversion.axes.dense_axes import add_fixed
from gossamer_formats.conversion.axes.fiber_offsets import (
    is_unknown_list,
    set_list_size,
    set_offsets,
)
from gossamer_formats.conversion.axes.own_slots import add_own_slots, store_coordinate
from gossamer_formats.conversion.axes.shared_slots import add_shared_slots
from gossamer_formats.conversion.axes.tables import occurring, rank_in_table, require_table
from gossamer_formats.conversion.axes.target_axes import (
    ROOT_SLOT,
    AxisSlot,
    IndexArray,
    TargetAxes,
    axes_after,
    length_of,
)
from gossamer_formats.conversion.kernels.shared_arguments import SINGLE
from gossamer_formats.conversion.recording.array_scalars import (
    size_of,
)
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.storage import Array
from gossamer_ir.core.axis_kinds import Indices, Indptr, indices_of, is_varied, width_of
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import Axis


def add_compressed(
    state: TargetAxes, axis: Axis, indptr: Indptr | None, indices: Indices, parent: AxisSlot
) -> None:
    """Add an axis that stores coordinates."""
    position = state.positions.get(axis.name)
    if indptr is not None and indices.is_mask:
        add_bits(state, axis, indptr, indices, parent)
    elif position is not None:
        width = state.sizes.value(width_of(axis))
        add_fixed(state, axis, position, state.arguments.constant(f"w_slots_{axis.name}", width))
        store_coordinate(state, axis, indices, has_unused=True)
    elif indptr is None and integer_value(width_of(axis)) == 1 and state.slots.are_own:
        add_fixed(state, axis, ZERO, SINGLE)
        store_coordinate(state, axis, indices)
    elif _has_slot_per_element(state, axis, indices):
        add_own_slots(state, axis, indptr, indices, parent)
    elif not indices.unique:
        raise NotDirectError("slots are repeated as often as the axes below need it")
    elif parent == ROOT_SLOT:
        _add_single_fiber(state, axis, indptr, indices)
    elif indptr is not None:
        add_shared_slots(state, axis, indptr, indices, parent)
    else:
        raise NotDirectError("fibers of fixed width share slots")


def _has_slot_per_element(state: TargetAxes, axis: Axis, indices: Indices) -> bool:
    after = axes_after(state, axis)
    if indices.unique and any(indices_of(other) is not None for other in after):
        return False
    return all(_has_one_slot(state, other) for other in after)


def _has_one_slot(state: TargetAxes, axis: Axis) -> bool:
    """Return whether each fiber of an axis has one slot, whatever the elements are."""
    width = width_of(axis)
    if is_varied(axis) or integer_value(width) == 1:
        return not is_varied(axis)
    # The rows of a group, for example. The width of an axis that stores coordinates may follow from them.
    is_known = indices_of(axis) is None and state.sizes.is_known(width)
    return is_known and state.sizes.value(width) == 1


def _add_single_fiber(
    state: TargetAxes, axis: Axis, indptr: Indptr | None, indices: Indices
) -> None:
    """Add an axis with one fiber: a table has the slot of each coordinate."""
    recorder, length, coordinate = (
        state.recorder,
        length_of(state, axis),
        state.coordinates[axis.name],
    )
    require_table(state, length.value)
    listed = occurring(state, coordinate, length)
    slot = rank_in_table(state, axis.name, coordinate, listed, length)
    if indptr is not None:
        set_offsets(state, indptr, recorder.compute(_single_offsets, listed), "int32")
        state.arrays[indices.handle] = IndexArray(listed, "int64")
        bind_value_slot(state, axis, slot, recorder.compute(size_of, listed))
        return
    if is_unknown_list(state, axis):
        count = recorder.compute(size_of, listed)
        set_list_size(state, axis, count)
        state.arrays[indices.handle] = IndexArray(listed, "int64")
        bind_value_slot(state, axis, slot, count)
        return
    count = recorder.decide(size_of, listed)
    width = state.sizes.bind(width_of(axis), count)
    if count > width:
        raise NotDirectError("a fiber has too many elements")
    padded = recorder.compute(_padded, listed, width, length.value)
    state.arrays[indices.handle] = IndexArray(padded, "int64")
    bind_value_slot(state, axis, slot, width)


def _single_offsets(listed: Array) -> Array:
    """Return the offsets of the only fiber; a table limits the number of slots."""
    return np.array([0, listed.size], np.int32)


def _padded(listed: Array, width: int, unused: int) -> Array:
    """Return coordinates, followed by `unused` up to a width.

    >>> _padded(np.array([4, 5]), 3, 9)
    array([4, 5, 9])
    """
    found = np.full(width, unused, np.int64)
    found[: listed.size] = listed
    return found
