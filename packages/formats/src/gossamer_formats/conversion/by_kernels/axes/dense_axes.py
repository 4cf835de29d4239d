"""Axes that store no coordinates: the position of an element is its coordinate."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import coordinate_along
from gossamer_formats.conversion.by_kernels.build_state.build_state import AxisResult, BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import dense_fibers
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_formats.conversion.by_kernels.kernels.statements import operation
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import sized_slot, slot_within
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import ONE, add
from gossamer_ir.nodes import Axis, Expr, Load, Store


def add_fixed(state: BuildState, axis: Axis, *, position: Expr, width: Size) -> AxisResult:
    """Return an axis with `width` slots in each fiber, of which the element takes the one at `position`."""
    parent, values = state.axis_slots[axis.parent], state.value_slot

    def within(name: str, outer: AxisSlot) -> AxisSlot:
        return slot_within(state, name, outer=outer, position=position, width=width)

    slot = within(f"N_{axis.name}", parent)
    # The values have an axis more than this one if an axis before is not its ancestor.
    value_slot = None if parent == values else within(f"N_values_{axis.name}", values)
    return AxisResult(slot, value_slot=value_slot)


def add_dense_varied(
    state: BuildState, axis: Axis, *, indptr: Indptr, parent: AxisSlot
) -> AxisResult:
    """Return an axis with fibers up to the largest coordinate."""
    coordinate, recorder = coordinate_along(state, axis.name), state.recorder
    lengths = recorder.compute(np.zeros, parent.size.value, np.int64)
    longer = operation("max", Load("LENGTH", (parent.slot,), "int64"), add(coordinate, ONE))
    query = {"LENGTH": ArrayArgument(lengths, "int64", (parent.size.expr,))}
    run_query(state, [Store("LENGTH", (parent.slot,), longer)], query)
    first, offsets = dense_fibers(state, axis, indptr=indptr, lengths=lengths)
    slot = sized_slot(state, axis, add(first, coordinate), offsets.total)
    return AxisResult(slot, storage=offsets.storage)
