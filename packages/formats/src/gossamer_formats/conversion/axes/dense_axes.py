"""Axes that store no coordinates: the position of an element is its coordinate."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.axes.bind_slots import bind_slot, bind_value_slot, slot_within
from gossamer_formats.conversion.axes.fiber_offsets import add_offsets, pass_offsets
from gossamer_formats.conversion.axes.target_axes import AxisSlot, TargetAxes, run_query
from gossamer_formats.conversion.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.kernels.shared_arguments import Size
from gossamer_formats.conversion.kernels.statements import operation
from gossamer_formats.conversion.recording.array_scalars import (
    longest_of,
    sum_of,
)
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import ONE, add
from gossamer_ir.nodes import Axis, Expr, Load, Store


def add_fixed(state: TargetAxes, axis: Axis, position: Expr, width: Size) -> None:
    """Add an axis with `width` slots in each fiber, of which the element takes the one at `position`."""
    parent, values = state.axis_slots[axis.parent], state.value_slot
    bind_slot(state, axis, slot_within(state, f"N_{axis.name}", parent, position, width))
    if parent == values:
        state.value_slot = state.axis_slots[axis.name]
    else:
        state.value_slot = slot_within(state, f"N_values_{axis.name}", values, position, width)


def add_ragged(state: TargetAxes, axis: Axis, indptr: Indptr, parent: AxisSlot) -> None:
    """Add an axis with fibers up to the largest coordinate."""
    coordinate, recorder = state.coordinates[axis.name], state.recorder
    lengths = recorder.compute(np.zeros, parent.size.value, np.int64)
    longer = operation("max", Load("LENGTH", (parent.slot,), "int64"), add(coordinate, ONE))
    query = {"LENGTH": ArrayArgument(lengths, "int64", (parent.size.expr,))}
    run_query(state, [Store("LENGTH", (parent.slot,), longer)], query)
    longest = recorder.decide(longest_of, lengths)
    if state.sizes.bind(axis.length, longest) < longest:
        raise NotDirectError("a fiber is too long")
    offsets = add_offsets(state, indptr, lengths, recorder.compute(sum_of, lengths))
    first = pass_offsets(state, axis, offsets, parent)
    assert offsets.largest is not None
    bind_value_slot(state, axis, add(first, coordinate), offsets.largest)
