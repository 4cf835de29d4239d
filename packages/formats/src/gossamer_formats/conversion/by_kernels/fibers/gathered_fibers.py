"""The distinct coordinates in each fiber of elements that are scattered: these are first gathered fiber by
fiber, by a counting sort.

The rows of a group in any order are an example: the loop over the rows visits the group several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    coordinate_along,
    length_of_axis,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.fibers.fiber_counts import no_counts
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import (
    ENDS,
    new_ends,
    offsets_of_lengths,
    starts_of,
    store_end,
)
from gossamer_formats.conversion.by_kernels.fibers.marked_fibers import (
    MarkedFibers,
    first_elements,
    list_capacity,
    mark_coordinate,
)
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_formats.conversion.by_kernels.kernels.sort_fibers import sort_fibers
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    define_local,
    increment,
    let,
    load,
    load_local,
    loop,
    store,
    store_local,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import first_of
from gossamer_formats.conversion.by_kernels.source.element_loop import VALUE_INDEX
from gossamer_ir.core.build import ONE, ZERO, add, index_var
from gossamer_ir.nodes import Axis, Expr, Stmt

_FIBER, _AT = index_var("g"), index_var("e")
"""A fiber, and the place of an element among those that were gathered."""


def gathered_fibers(
    state: BuildState, axis: Axis, parent: AxisSlot, *, are_sorted: bool
) -> MarkedFibers:
    """Return the distinct coordinates along an axis in each fiber, with the slots of elements."""
    recorder, size = state.recorder, state.source.value_count
    arguments = {
        **state.arguments.by_name,
        **_gather_fibers(state, axis, parent),
    }
    length = length_of_axis(state, axis)
    ends = new_ends(state, parent, "int32")
    listed, count = _listed_coordinates(state, parent, arguments, ends, length=length)
    coordinates = recorder.compute(first_elements, listed, count)
    if are_sorted:
        sort_fibers(recorder, (coordinates, count), "int32", (ends.array, "int32"))
    slots = recorder.compute(np.empty, size, np.int32)
    # Not initialized: a fiber reads only the ranks of its own coordinates, which it has stored before.
    ranks = recorder.compute(np.empty, length.value, np.int32)
    results = {
        "count": count,
        "STARTS": ArrayArgument(ends.array, "int32", ends.shape),
        "LISTED": ArrayArgument(coordinates, "int32", (index_var("count"),)),
        "RANK": ArrayArgument(ranks, "int32", (length.expr,)),
        "SLOTS": ArrayArgument(slots, "int32", (state.loop.size.expr,)),
    }
    run_kernel(recorder, _assigning(parent.size.expr), {**arguments, **results})
    return MarkedFibers(ends.array, coordinates, count, slots)


def _listed_coordinates(
    state: BuildState,
    parent: AxisSlot,
    arguments: Mapping[str, Any],
    ends: ArrayArgument,
    *,
    length: Size,
) -> tuple[Any, Any]:
    """Return an array that begins with the distinct coordinates of all fibers, and their number. The ends of
    fibers are stored in `ends`."""
    recorder = state.recorder
    totals = recorder.compute(np.zeros, 1, np.int64)
    # The number is not known before: each element may have a coordinate of its own.
    capacity = recorder.compute(list_capacity, state.source.value_count)
    listed = recorder.compute(np.empty, capacity, np.int32)
    marks = recorder.compute(np.zeros, length.value, np.int32)
    results = {
        "capacity": capacity,
        "MARK": ArrayArgument(marks, "int32", (length.expr,)),
        "LISTED": ArrayArgument(listed, "int32", (index_var("capacity"),)),
        "TOTALS": ArrayArgument(totals, "int64", (ONE,)),
        ENDS: ends,
    }
    run_kernel(recorder, _marking(parent.size.expr), {**arguments, **results})
    return listed, recorder.compute(first_of, totals)


def _gather_fibers(state: BuildState, axis: Axis, parent: AxisSlot) -> dict[str, ArrayArgument]:
    """Return the coordinates and value indices of elements fiber by fiber, and the offsets of fibers."""
    recorder, count, fibers = (
        state.recorder,
        state.source.value_count,
        parent.size.expr,
    )
    counts = no_counts(state, parent)
    query = {"COUNT": ArrayArgument(counts, "int32", (fibers,))}
    run_query(state, [increment("COUNT", parent.slot, "int32")], query)
    offsets = recorder.compute(offsets_of_lengths, counts, "int32")
    starts = recorder.compute(starts_of, offsets)
    new_arrays = {
        "COORDINATES": recorder.compute(np.empty, count, np.int32),
        "ELEMENTS": recorder.compute(np.empty, count, np.int32),
    }
    size = state.loop.size.expr
    gathered = {name: ArrayArgument(array, "int32", (size,)) for name, array in new_arrays.items()}
    # A copy: these advance in place, and the offsets are needed afterwards.
    next_slots = recorder.compute(np.copy, starts)
    fiber, at = index_var("g_"), index_var("at_")
    stmts: list[Stmt] = [
        let(fiber.name, parent.slot),
        let(at.name, load("NEXT", fiber, "int32")),
        store("NEXT", fiber, add(at, ONE), "int32"),
        store("COORDINATES", at, coordinate_along(state, axis.name), "int32"),
        store("ELEMENTS", at, VALUE_INDEX, "int32"),
    ]
    taken = {"NEXT": ArrayArgument(next_slots, "int32", (fibers,))}
    run_query(state, stmts, {**taken, **gathered})
    return {**gathered, "OFFSETS": ArrayArgument(offsets, "int32", (add(fibers, ONE),))}


def _marking(fibers: Expr) -> list[Stmt]:
    """Return the kernel that lists the distinct coordinates of each fiber."""
    body = [
        store_local("BEGIN", load_local("TOTAL")),
        _over_elements(mark_coordinate(_coordinate(), lists_slots=False)),
        store_end(_FIBER, load_local("TOTAL"), "int32"),
    ]
    return [
        *define_local("TOTAL", ZERO),
        *define_local("BEGIN", ZERO),
        loop(_FIBER.name, ZERO, fibers, body),
        store("TOTALS", ZERO, load_local("TOTAL")),
    ]


def _assigning(fibers: Expr) -> list[Stmt]:
    """Return the kernel that finds the slot of each element: a table has those of one fiber at a time."""
    slot = index_var("s")
    end = load("STARTS", add(_FIBER, ONE), "int32")
    coordinate_rank = load("RANK", _coordinate(), "int32")
    body = [
        loop(
            slot.name,
            load("STARTS", _FIBER, "int32"),
            end,
            [store("RANK", load("LISTED", slot, "int32"), slot, "int32")],
        ),
        _over_elements([store("SLOTS", load("ELEMENTS", _AT, "int32"), coordinate_rank, "int32")]),
    ]
    return [loop(_FIBER.name, ZERO, fibers, body)]


def _over_elements(body: list[Stmt]) -> Stmt:
    """Return the loop over the elements of a fiber."""
    first, end = (load("OFFSETS", at, "int32") for at in (_FIBER, add(_FIBER, ONE)))
    return loop(_AT.name, first, end, body)


def _coordinate() -> Expr:
    return load("COORDINATES", _AT, "int32")
