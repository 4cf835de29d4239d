"""Axes that store coordinates, whose slots are shared by elements."""

from __future__ import annotations

from gossamer_formats.conversion.axes.bind_slots import bind_value_slot
from gossamer_formats.conversion.axes.fiber_offsets import set_offsets
from gossamer_formats.conversion.axes.fiber_ranks import add_ranks
from gossamer_formats.conversion.axes.marked_fibers import marked_fibers
from gossamer_formats.conversion.axes.target_axes import AxisSlot, IndexArray, TargetAxes
from gossamer_formats.conversion.kernels.statements import load
from gossamer_formats.conversion.source.element_loop import VALUE_INDEX
from gossamer_ir.core.axis_kinds import Indices, Indptr
from gossamer_ir.core.build import ZERO, add, index_var
from gossamer_ir.nodes import Axis, InRange


def add_shared_slots(
    state: TargetAxes, axis: Axis, indptr: Indptr, indices: Indices, parent: AxisSlot
) -> None:
    """Add an axis whose slots are shared by elements."""
    name, length = axis.name, state.sizes.value(axis.length)
    fibers = marked_fibers(state, axis, parent, lists_slots=not indices.sorted)
    set_offsets(state, indptr, fibers.offsets, "int32")
    state.arrays[indices.handle] = IndexArray(fibers.coordinates, "int32", max(length - 1, 0))
    if fibers.slots is None:
        rank = add_ranks(state, axis, parent, fibers)
        bind_value_slot(state, axis, add(index_var(f"b_{name}"), rank), fibers.total)
        return
    array, size = f"SLOTS_{name}", state.loop.size.expr
    count = state.arguments.integer(f"N_{name}", fibers.total).expr
    state.arguments.array(array, fibers.slots, "int32", size, (InRange(array, ZERO, count),))
    bind_value_slot(state, axis, load(array, VALUE_INDEX, "int32"), fibers.total, count)
