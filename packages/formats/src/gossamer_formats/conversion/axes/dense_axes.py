"""Axes that store no coordinates: the place of an element is its coordinate."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.axes.bind_slots import (
    add_offsets,
    pass_offsets,
    set_place,
    set_varied_place,
)
from gossamer_formats.conversion.axes.target_axes import SlotPlace, TargetAxes, run_query
from gossamer_formats.conversion.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.kernels.shared_arguments import Size
from gossamer_formats.conversion.kernels.statements import digits, operation
from gossamer_formats.conversion.recording.array_scalars import (
    longest_of,
    sum_of,
)
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import ONE, add
from gossamer_ir.nodes import Axis, Expr, Load, Store


def add_fixed(state: TargetAxes, axis: Axis, place: Expr, width: Size) -> None:
    """Add an axis with `width` slots in each fiber, of which the element takes the one at `place`."""
    parent, position = state.places[axis.parent], state.position
    set_place(state, axis, _numbered(state, f"N_{axis.name}", parent, place, width))
    if parent == position:
        state.position = state.places[axis.name]
    else:
        state.position = _numbered(state, f"N_values_{axis.name}", position, place, width)


def _numbered(
    state: TargetAxes, name: str, parent: SlotPlace, digit: Expr, width: Size
) -> SlotPlace:
    if width.value == 1:
        return parent
    count = state.arguments.product(name, parent.size, width)
    return SlotPlace(digits(parent.slot, width.expr, digit), count)


def add_ragged(state: TargetAxes, axis: Axis, indptr: Indptr, parent: SlotPlace) -> None:
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
    set_varied_place(state, axis, add(first, coordinate), offsets.largest)
