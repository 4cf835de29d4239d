"""Axes that store coordinates: which of the ways to build them suits."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.by_kernels.axes.axes_with_own_slots import (
    add_own_slots,
    stored_coordinate,
)
from gossamer_formats.conversion.by_kernels.axes.axes_with_shared_slots import add_shared_slots
from gossamer_formats.conversion.by_kernels.axes.bit_axes import add_bits
from gossamer_formats.conversion.by_kernels.axes.dense_axes import add_fixed
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    axes_after,
    coordinate_along,
    length_of_axis,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import (
    AxisResult,
    BuildState,
    CompressedAxis,
)
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    BuiltStorage,
    IndexArray,
    ValueSlots,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import ROOT_SLOT
from gossamer_formats.conversion.by_kernels.fibers.coordinate_tables import (
    occurring,
    rank_in_table,
    require_table,
)
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import (
    fiber_offsets,
    is_unknown_list,
    list_size,
)
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SINGLE, Size
from gossamer_formats.conversion.by_kernels.recording.array_scalars import (
    longest_of,
    size_of,
    total_of,
)
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.slots.slot_ranks import is_repeated, repeated_slots
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import sized_slot
from gossamer_ir.core.axis_kinds import indices_of, is_varied, width_of
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import Axis, Expr
from gossamer_support.arrays import Array


def add_compressed(state: BuildState, new: CompressedAxis) -> AxisResult:
    """Return an axis that stores coordinates."""
    axis, indptr = new.axis, new.indptr
    position = state.elements.positions.get(axis.name)
    # Bits are set in any order of the elements, and repeated ones are set once: masks need no other case.
    if indptr is not None and new.indices.is_mask:
        return add_bits(state, new, indptr)
    # A slot axis above has counted the elements of the fiber.
    if position is not None:
        width = state.sizes.value(width_of(axis))
        slots = state.arguments.constant(f"w_slots_{axis.name}", width)
        return _with_fixed_slots(state, new, position=position, width=slots, has_unused=True)
    # One slot below a slot of the element's own, as the columns of COO: nothing is counted.
    if indptr is None and integer_value(width_of(axis)) == 1 and state.storage.slots.are_own:
        return _with_fixed_slots(state, new, position=ZERO, width=SINGLE)
    if _has_slot_per_element(state, new):
        return add_own_slots(state, new)
    if is_repeated(state, axis):
        return _add_repeated_slots(state, new)
    # One fiber has its elements together, whatever their order: a table of all coordinates takes no sorting.
    if new.parent == ROOT_SLOT:
        return _add_single_fiber(state, new)
    if indptr is not None:
        return add_shared_slots(state, new, indptr)
    # The width would be that of the longest fiber, which is known only when all have been marked.
    raise NotDirectError("fibers of fixed width share slots")


def _with_fixed_slots(
    state: BuildState,
    new: CompressedAxis,
    *,
    position: Expr,
    width: Size,
    has_unused: bool = False,
) -> AxisResult:
    """Return an axis whose position in the fiber is known, and whose coordinates the last kernel stores."""
    result = add_fixed(state, new.axis, position=position, width=width)
    stored = stored_coordinate(state, new, has_unused=has_unused)
    return result._replace(storage=BuiltStorage(stored=(stored,)))


def _add_repeated_slots(state: BuildState, new: CompressedAxis) -> AxisResult:
    """Return an axis that stores a coordinate as often as the fibers below need it."""
    axis, indptr, recorder = new.axis, new.indptr, state.recorder
    repeated = repeated_slots(state, axis, new.parent)
    axis_storage = BuiltStorage(slots=ValueSlots(are_own=repeated.are_own))
    if indptr is None and not is_unknown_list(state, axis):
        longest = recorder.decide(longest_of, recorder.compute(np.diff, repeated.offsets))
        width = state.sizes.bind(width_of(axis), longest)
        if longest > width:
            # NumPy names the elements of the fiber.
            raise NotDirectError("a fiber has too many elements")
        slots = state.arguments.constant(f"w_slots_{axis.name}", width)
        result = _with_fixed_slots(state, new, position=repeated.rank, width=slots, has_unused=True)
        return result._replace(
            elements=repeated.bindings, storage=result.storage.extend(axis_storage)
        )
    total = recorder.compute(total_of, repeated.offsets)
    axis_storage = axis_storage._replace(stored=(stored_coordinate(state, new),))
    if indptr is None:
        storage = axis_storage._replace(slot_counts=list_size(axis, total))
    else:
        offsets = fiber_offsets(state, indptr, offsets=repeated.offsets, dtype=repeated.dtype)
        storage = offsets.storage.extend(axis_storage)
    return AxisResult(sized_slot(state, axis, repeated.slot, total), repeated.bindings, storage)


def _has_slot_per_element(state: BuildState, new: CompressedAxis) -> bool:
    after = axes_after(state, new.axis)
    if new.indices.unique and any(indices_of(other) is not None for other in after):
        return False
    return all(_has_one_slot(state, other) for other in after)


def _has_one_slot(state: BuildState, axis: Axis) -> bool:
    """Return whether each fiber of an axis has one slot, whatever the elements are."""
    width = width_of(axis)
    if is_varied(axis) or integer_value(width) == 1:
        return not is_varied(axis)
    # The rows of a group, for example. The width of an axis that stores coordinates may follow from them.
    is_known = indices_of(axis) is None and state.sizes.is_known(width)
    return is_known and state.sizes.value(width) == 1


def _add_single_fiber(state: BuildState, new: CompressedAxis) -> AxisResult:
    """Return an axis with one fiber: a table has the slot of each coordinate."""
    axis, recorder, length = (
        new.axis,
        state.recorder,
        length_of_axis(state, new.axis),
    )
    coordinate = coordinate_along(state, axis.name)
    require_table(state, length.value)
    listed = occurring(state, coordinate, length)
    slot = rank_in_table(state, axis.name, value=coordinate, listed=listed, size=length)
    complete = BuiltStorage({new.indices.handle: IndexArray(listed, "int64")})
    if new.indptr is not None:
        both = recorder.compute(_single_offsets, listed)
        offsets = fiber_offsets(state, new.indptr, offsets=both, dtype="int32")
        count = recorder.compute(size_of, listed)
        storage = offsets.storage.extend(complete)
        return AxisResult(sized_slot(state, axis, slot, count), storage=storage)
    if is_unknown_list(state, axis):
        count = recorder.compute(size_of, listed)
        storage = complete._replace(slot_counts=list_size(axis, count))
        return AxisResult(sized_slot(state, axis, slot, count), storage=storage)
    listed_count = recorder.decide(size_of, listed)
    width = state.sizes.bind(width_of(axis), listed_count)
    if listed_count > width:
        # NumPy names the elements of the fiber.
        raise NotDirectError("a fiber has too many elements")
    padded = recorder.compute(_pad_coordinates, listed, width, length.value)
    storage = BuiltStorage({new.indices.handle: IndexArray(padded, "int64")})
    return AxisResult(sized_slot(state, axis, slot, width), storage=storage)


def _single_offsets(listed: Array) -> Array:
    """Return the offsets of the only fiber; a table limits the number of slots."""
    return np.array([0, listed.size], np.int32)


def _pad_coordinates(listed: Array, width: int, unused: int) -> Array:
    """Return coordinates, followed by `unused` up to a width.

    >>> _pad_coordinates(np.array([4, 5]), 3, 9)
    array([4, 5, 9])
    """
    padded = np.full(width, unused, np.int64)
    padded[: listed.size] = listed
    return padded
