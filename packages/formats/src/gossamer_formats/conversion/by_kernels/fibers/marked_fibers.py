"""The distinct coordinates in each fiber of an axis, whose slots are shared by elements.

The elements of a fiber must be together. Then a table that is as long as the axis marks the coordinates of
one fiber at a time, as the products of rows do in the algorithm of Gustavson.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.axis_order import ancestors
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    coordinate_along,
    has_full_ancestors,
    length_of_axis,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisCoordinate,
    AxisSlot,
)
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.fibers.coordinate_tables import require_table
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import (
    ENDS,
    new_ends,
    offsets_of_ends,
    offsets_of_lengths,
    store_end,
)
from gossamer_formats.conversion.by_kernels.kernels.gather_fibers import gather_fibers
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.loop_nest import hoist
from gossamer_formats.conversion.by_kernels.kernels.sort_fibers import sort_fibers
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    define_local,
    let,
    load,
    load_local,
    logical_and,
    select,
    store,
    store_local,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import first_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.source.element_loop import VALUE_INDEX
from gossamer_formats.conversion.by_kernels.source.element_order import is_grouped_by
from gossamer_formats.conversion.destination.dtypes import limits_of
from gossamer_formats.conversion.destination.inverse_map import logical_var
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, sub
from gossamer_ir.nodes import Axis, Binary, Const, Expr, Stmt, Var
from gossamer_support.arrays import Array


class MarkedFibers(NamedTuple):
    """The first slot of each fiber and the coordinates of all fibers, of int32, and how many there are.
    `slots`: the slot of the element at each value index of the source; None if it follows from the rank of
    its coordinate, since fibers are sorted."""

    offsets: RecordedValue
    coordinates: RecordedValue
    total: RecordedValue
    slots: RecordedValue | None


def marked_fibers(
    state: BuildState, axis: Axis, parent: AxisSlot, *, lists_slots: bool
) -> MarkedFibers | None:
    """Return the distinct coordinates along an axis in each fiber: sorted, or in the order in which they are
    found, with the slots of elements. None if elements of a fiber are not together.

    Raises `NotDirectError` (`needs_order`) if it is known before that they are scattered.
    """
    # Known from the declarations: sorting first is then faster than a pass that is likely to fail.
    if _are_scattered(state, axis, parent):
        raise NotDirectError("elements of a fiber are scattered", needs_order=True)
    recorder, size = state.recorder, state.source.value_count
    require_table(state, length_of_axis(state, axis).value)
    require_table(state, parent.size.value)
    # Marks, slots and coordinates are of int32, half the memory of int64: more elements are left to NumPy.
    if not recorder.decide(_fits, size):
        raise NotDirectError("there are too many elements")
    lists = _new_lists(state, parent, lists_slots=lists_slots)
    _run_marking(state, axis, parent=parent, lists=lists)
    if recorder.decide(_is_begun_again, lists.totals.array):
        return None
    count = recorder.compute(first_of, lists.totals.array)
    coordinates = recorder.compute(first_elements, lists.coordinates.array, count)
    if recorder.decide(_has_gone_back, lists.totals.array):
        begins = lists.begins.array
        lengths = recorder.compute(_lengths, begins, lists.ends.array)
        offsets = recorder.compute(offsets_of_lengths, lengths, "int32")
        coordinates = gather_fibers(recorder, (coordinates, count), begins, offsets)
    else:
        offsets = recorder.compute(offsets_of_ends, lists.ends.array)
        if lists.slots is not None:
            return MarkedFibers(offsets, coordinates, count, lists.slots.array)
    sort_fibers(recorder, (coordinates, count), "int32", (offsets, "int32"))
    return MarkedFibers(offsets, coordinates, count, None)


class _Lists(NamedTuple):
    """Results of the kernel that marks coordinates: the coordinates in the order in which they are found; the
    first and the end of each fiber among them; the number of coordinates, whether a fiber is less than the
    one before, and whether it is begun again; the slots of elements if they are wanted."""

    capacity: RecordedValue
    coordinates: ArrayArgument
    begins: ArrayArgument
    ends: ArrayArgument
    totals: ArrayArgument
    slots: ArrayArgument | None


def _new_lists(state: BuildState, parent: AxisSlot, *, lists_slots: bool) -> _Lists:
    recorder, value_count = state.recorder, state.source.value_count
    capacity = recorder.compute(list_capacity, value_count)
    coordinates = recorder.compute(np.empty, capacity, np.int32)
    totals = recorder.compute(np.zeros, 3, np.int64)
    begins = recorder.compute(np.zeros, parent.size.value, np.int32)
    slots = None
    if lists_slots:
        element_slots = recorder.compute(np.empty, value_count, np.int32)
        slots = ArrayArgument(element_slots, "int32", (state.loop.size.expr,))
    return _Lists(
        capacity,
        ArrayArgument(coordinates, "int32", (index_var("capacity"),)),
        ArrayArgument(begins, "int32", (parent.size.expr,)),
        new_ends(state, parent, "int32"),
        ArrayArgument(totals, "int64", (index(3),)),
        slots,
    )


def _run_marking(state: BuildState, axis: Axis, *, parent: AxisSlot, lists: _Lists) -> None:
    """Run the kernel that lists the coordinate of an element unless it is marked in its fiber."""
    length = length_of_axis(state, axis)
    marks = state.recorder.compute(np.zeros, length.value, np.int32)
    arguments = {
        "capacity": lists.capacity,
        "MARK": ArrayArgument(marks, "int32", (length.expr,)),
        "BEGINS": lists.begins,
        ENDS: lists.ends,
        "LISTED": lists.coordinates,
        "TOTALS": lists.totals,
    }
    if lists.slots is not None:
        arguments["SLOTS"] = lists.slots
    are_together = _are_together(state, axis)
    end = store_end(parent.slot, load_local("TOTAL"), "int32")
    stmts = [
        *_begin_fiber(parent, may_go_back=not are_together),
        *mark_coordinate(coordinate_along(state, axis.name), lists_slots=lists.slots is not None),
    ]
    tail = None
    if are_together and has_full_ancestors(state, axis):
        tail = hoist(state.loop.nest, state.elements.stmts, end)
    else:
        stmts.append(end)
    results = ("TOTAL", "BACKWARDS", "AGAIN")
    total_stores = [
        store("TOTALS", index(number), load_local(name)) for number, name in enumerate(results)
    ]
    before = [stmt for name in (*results, "LAST", "BEGIN") for stmt in define_local(name, ZERO)]
    run_query(state, stmts, arguments, before=before, after=total_stores, tail=tail)


def _begin_fiber(parent: AxisSlot, *, may_go_back: bool) -> list[Stmt]:
    """Return the statements that notice another fiber, whether it is less than the one before, and whether
    it has elements that are not together with this one."""
    fiber, last = index_var("g_"), load_local("LAST")
    is_other = compare("ne", fiber, last)
    begin = select(is_other, load_local("TOTAL"), load_local("BEGIN"))
    goes_back = select(compare("lt", fiber, last), ONE, load_local("BACKWARDS"))
    has_elements = compare("gt", load(ENDS, add(fiber, ONE), "int32"), ZERO)
    is_begun_again = select(logical_and(is_other, has_elements), ONE, load_local("AGAIN"))
    notices = [
        store_local("BACKWARDS", goes_back),
        store_local("AGAIN", is_begun_again),
        store("BEGINS", fiber, begin, "int32"),
    ]
    return [
        let(fiber.name, parent.slot),
        *(notices if may_go_back else []),
        store_local("BEGIN", begin),
        store_local("LAST", fiber),
    ]


def mark_coordinate(coordinate: Expr, *, lists_slots: bool) -> list[Stmt]:
    """Return the statements that list a coordinate unless it is marked in its fiber, which begins at slot
    `BEGIN`: its mark is the slot after its own."""
    listed, end, mark, slot = (index_var(name) for name in ("c_", "k_", "m_", "s_"))
    is_marked = compare("gt", mark, load_local("BEGIN"))
    stmts: list[Stmt] = [
        let(listed.name, coordinate),
        # A coordinate that is marked already is stored at the end, and overwritten by the next.
        let(end.name, load_local("TOTAL")),
        store("LISTED", end, listed, "int32"),
        let(mark.name, load("MARK", listed, "int32")),
        let(slot.name, select(is_marked, sub(mark, ONE), end)),
        store_local("TOTAL", add(end, select(is_marked, ZERO, ONE))),
        store("MARK", listed, add(slot, ONE), "int32"),
    ]
    if lists_slots:
        stmts.append(store("SLOTS", VALUE_INDEX, slot, "int32"))
    return stmts


def _are_together(state: BuildState, axis: Axis) -> bool:
    """Return whether the elements of each fiber are known to be together, in the order of the fibers: the
    elements are sorted by a logical coordinate, with which the slot of the fiber ascends."""
    values = [coordinate.value for coordinate in _coordinates_of_fiber(state, axis)]
    dimensions = _dimensions_of_fiber(state, axis)
    match [value for value in values if value != ZERO]:
        case [Var() as var] | [Binary(op="floordiv", lhs=Var() as var, rhs=Const())]:
            is_logical = [var] == [logical_var(dimension) for dimension in dimensions]
            return is_logical and is_grouped_by(state.order, [*dimensions])
    return False


def _dimensions_of_fiber(state: BuildState, axis: Axis) -> frozenset[int]:
    return frozenset().union(
        *(coordinate.dimensions for coordinate in _coordinates_of_fiber(state, axis))
    )


def _coordinates_of_fiber(state: BuildState, axis: Axis) -> list[AxisCoordinate]:
    """Return the coordinates along the axes above one. That along an axis of slots is not known yet."""
    outer_coordinates = [
        state.elements.coordinates.get(name) for name in ancestors(state.by_name, axis.name)
    ]
    return [coordinate for coordinate in outer_coordinates if coordinate is not None]


def _fits(value_count: int) -> bool:
    return value_count < limits_of("int32")[1]


def list_capacity(value_count: int) -> int:
    """Return the number of coordinates that may be stored: one more, which is marked already."""
    return value_count + 1


def _has_gone_back(totals: Array) -> bool:
    return bool(totals[1])


def _is_begun_again(totals: Array) -> bool:
    return bool(totals[2])


def _lengths(begins: Array, ends: Array) -> Array:
    """Return the numbers of coordinates of fibers from their begins and ends."""
    return ends[1:] - begins


def first_elements(listed: Array, count: int) -> Array:
    """Return the coordinates that were listed."""
    return listed[:count]


def _are_scattered(state: BuildState, axis: Axis, parent: AxisSlot) -> bool:
    """Return whether the outermost loop varies a coordinate on which the fiber of an element does not depend:
    then hardly any fiber has its elements together."""
    fiber_dimensions = _dimensions_of_fiber(state, axis)
    is_single = parent.size.value == 1 or all(
        state.source.shape[dimension] == 1 for dimension in fiber_dimensions
    )
    return (
        not is_single
        and bool(state.order.digits)
        and state.order.digits[0].dimension not in fiber_dimensions
    )
