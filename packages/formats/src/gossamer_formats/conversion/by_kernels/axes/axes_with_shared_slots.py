"""Axes that store coordinates, whose slots are shared by elements."""

from __future__ import annotations

from gossamer_formats.conversion.by_kernels.build_state.build_state import (
    AxisResult,
    BuildState,
    CompressedAxis,
)
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    BuiltStorage,
    IndexArray,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.fibers.fiber_coordinates import fiber_coordinates
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import fiber_offsets
from gossamer_formats.conversion.by_kernels.fibers.fiber_ranks import rank_in_fiber
from gossamer_formats.conversion.by_kernels.kernels.statements import load
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import sized_slot
from gossamer_formats.conversion.by_kernels.source.element_loop import VALUE_INDEX
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import ZERO, add
from gossamer_ir.nodes import InRange


def add_shared_slots(state: BuildState, new: CompressedAxis, indptr: Indptr) -> AxisResult:
    """Return an axis whose slots are shared by elements."""
    axis, name, parent = new.axis, new.name, new.parent
    fibers = fiber_coordinates(state, axis, parent, are_sorted=new.indices.sorted)
    offsets = fiber_offsets(state, indptr, offsets=fibers.offsets, dtype="int32")
    largest = max(state.sizes.value(axis.length) - 1, 0)
    coordinates = IndexArray(fibers.coordinates, "int32", largest)
    storage = offsets.storage.extend(BuiltStorage({new.indices.handle: coordinates}))
    if fibers.slots is None:
        ranked = rank_in_fiber(state, axis, parent=parent, fibers=fibers)
        slot = sized_slot(state, axis, add(ranked.first, ranked.rank), fibers.total)
        return AxisResult(slot, ranked.bindings, storage)
    array, count = f"SLOTS_{name}", state.arguments.integer(f"N_{name}", fibers.total)
    facts = (InRange(array, ZERO, count.expr),)
    state.arguments.array(array, fibers.slots, "int32", state.loop.size.expr, facts)
    return AxisResult(AxisSlot(load(array, VALUE_INDEX, "int32"), count), storage=storage)
