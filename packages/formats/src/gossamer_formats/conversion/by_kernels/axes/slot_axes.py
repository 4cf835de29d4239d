"""Axes that do not occur in the map: they count slots, which a compressed axis below fills."""

from __future__ import annotations

from gossamer_formats.conversion.by_kernels.build_state.build_state import AxisResult, BuildState
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    BuiltStorage,
    ValueSlots,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisCoordinate,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import dense_fibers
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.slots.slot_ranks import max_sub_fibers, sub_fibers_below
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import sized_slot
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import add
from gossamer_ir.nodes import Axis


def add_slots(state: BuildState, axis: Axis, indptr: Indptr | None) -> AxisResult:
    """Return an axis that does not occur in the map. The compressed axis below takes the elements of a group
    by their ranks, in sub-fibers of its width."""
    # Left to NumPy, which computes the longest fiber before it stores any.
    if indptr is None:
        raise NotDirectError("the number of slots is the same in all fibers")
    parent = state.axis_slots[axis.parent]
    below = sub_fibers_below(state, axis, parent)
    ranks = below.ranks
    lengths = state.recorder.compute(max_sub_fibers, ranks.counts, parent.size.value, below.width)
    first, offsets = dense_fibers(state, axis, indptr=indptr, lengths=lengths)
    coordinates = ElementBindings({axis.name: AxisCoordinate(below.sub_fiber)})
    slot_storage = BuiltStorage(slots=ValueSlots(are_own=ranks.are_own))
    return AxisResult(
        sized_slot(state, axis, add(first, below.sub_fiber), offsets.total),
        below.bindings.extend(coordinates),
        offsets.storage.extend(slot_storage),
    )
