"""The distinct coordinates in each fiber of an axis, whose slots are shared by elements.

The elements of a fiber must be together. Then a table that is as long as the axis marks the coordinates of
one fiber at a time, as the products of rows do in the algorithm of Gustavson.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.compiled.axes.places import (
    offsets_of_ends,
    set_offsets,
    set_varied_place,
)
from gossamer_formats.conversion.compiled.axes.tables import require_table
from gossamer_formats.conversion.compiled.axes.target_axes import (
    IndexArray,
    Place,
    TargetAxes,
    axes_before,
    length_of,
    run_query,
)
from gossamer_formats.conversion.compiled.not_direct import NotDirectError
from gossamer_formats.conversion.compiled.plans.plan import Value
from gossamer_formats.conversion.compiled.programs.program import ArrayArgument
from gossamer_formats.conversion.compiled.programs.sort_fibers import sort_fibers
from gossamer_formats.conversion.compiled.programs.statements import (
    cell,
    compare,
    get_cell,
    let,
    load,
    loop,
    select,
    set_cell,
    store,
    when,
)
from gossamer_formats.conversion.target.dtypes import limits_of
from gossamer_formats.storage import Array
from gossamer_ir.core.axis_kinds import Indices, Indptr, indices_of
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, sub
from gossamer_ir.nodes import Axis, Expr, Stmt


class MarkedFibers(NamedTuple):
    """The first slot of each fiber and the coordinates of all fibers, of int32, and how many there are."""

    offsets: Value
    coordinates: Value
    total: Value


def add_marked(
    state: TargetAxes, axis: Axis, indptr: Indptr, indices: Indices, parent: Place
) -> None:
    """Add an axis whose slots are shared by elements."""
    fibers = marked_fibers(state, axis, parent)
    set_offsets(state, indptr, fibers.offsets, "int32")
    length = state.sizes.value(axis.length)
    state.arrays[indices.handle] = IndexArray(fibers.coordinates, "int32", max(length - 1, 0))
    rank = add_ranks(state, axis, parent, fibers)
    set_varied_place(state, axis, add(index_var(f"b_{axis.name}"), rank), fibers.total)


def marked_fibers(state: TargetAxes, axis: Axis, parent: Place) -> MarkedFibers:
    """Return the distinct coordinates along an axis in each fiber, sorted if the axis says so.

    Raises `NotDirectError` (`needs_order`) if elements of a fiber are not together.
    """
    if _are_scattered(state, axis, parent):
        raise NotDirectError("elements of a fiber are scattered", needs_order=True)
    recorder, length = state.recorder, length_of(state, axis)
    require_table(state, length.value)
    require_table(state, parent.size.value)
    if not recorder.decide(_fits, state.source.value_count):
        raise NotDirectError("there are too many elements")
    capacity = recorder.compute(_capacity, state.source.value_count)
    listed = recorder.compute(np.empty, capacity, np.int32)
    ends = recorder.compute(np.zeros, parent.size.value, np.int32)
    totals = recorder.compute(np.zeros, 2, np.int64)
    marks = recorder.compute(np.zeros, length.value, np.int32)
    scalars = [each for name in ("TOTAL", "LAST", "BACKWARDS") for each in cell(name, ZERO)]
    run_query(
        state,
        _mark(state.coordinates[axis.name], parent),
        {
            "capacity": capacity,
            "MARK": ArrayArgument(marks, "int32", (length.expr,)),
            "ENDS": ArrayArgument(ends, "int32", (parent.size.expr,)),
            "LISTED": ArrayArgument(listed, "int32", (index_var("capacity"),)),
            "TOTALS": ArrayArgument(totals, "int64", (index(2),)),
        },
        before=scalars,
        after=[
            store("TOTALS", ZERO, get_cell("TOTAL")),
            store("TOTALS", ONE, get_cell("BACKWARDS")),
        ],
    )
    if recorder.decide(_has_gone_back, totals):
        raise NotDirectError("elements of a fiber are not together", needs_order=True)
    count = recorder.compute(_count, totals)
    offsets = recorder.compute(offsets_of_ends, ends)
    coordinates = recorder.compute(_first, listed, count)
    stored = indices_of(axis)
    if stored is None or stored.sorted:
        sort_fibers(recorder, (coordinates, count), "int32", (offsets, "int32"))
    return MarkedFibers(offsets, coordinates, count)


def _mark(coordinate: Expr, parent: Place) -> Sequence[Stmt]:
    """Return the statements that list the coordinate of an element unless it is marked in its fiber."""
    fiber, found, place = index_var("g_"), index_var("c_"), index_var("k_")
    after = add(fiber, ONE)
    is_marked = compare("eq", load("MARK", found, "int32"), after)
    return [
        let(fiber.name, parent.slot),
        set_cell(
            "BACKWARDS",
            select(compare("lt", fiber, get_cell("LAST")), ONE, get_cell("BACKWARDS")),
        ),
        set_cell("LAST", fiber),
        let(found.name, coordinate),
        # A coordinate that is marked already is stored at the end, and overwritten by the next.
        let(place.name, get_cell("TOTAL")),
        store("LISTED", place, found, "int32"),
        set_cell("TOTAL", add(place, select(is_marked, ZERO, ONE))),
        store("MARK", found, after, "int32"),
        store("ENDS", fiber, get_cell("TOTAL"), "int32"),
    ]


def _fits(value_count: int) -> bool:
    return value_count < limits_of("int32")[1]


def _capacity(value_count: int) -> int:
    """Return the number of coordinates that may be stored: one more, which is marked already."""
    return value_count + 1


def _has_gone_back(totals: Array) -> bool:
    return bool(totals[1])


def _count(totals: Array) -> int:
    return int(totals[0])


def _first(listed: Array, count: int) -> Array:
    return listed[:count]


def _are_scattered(state: TargetAxes, axis: Axis, parent: Place) -> bool:
    """Return whether the outermost loop varies a coordinate on which the fiber of an element does not depend:
    then hardly any fiber has its elements together."""
    outer = [state.dimensions.get(name, frozenset()) for name in axes_before(state, axis)]
    of_fiber = frozenset().union(*outer)
    is_single = parent.size.value == 1 or not of_fiber
    return (
        not is_single
        and bool(state.order.digits)
        and state.order.digits[0].dimension not in of_fiber
    )


def add_ranks(state: TargetAxes, axis: Axis, parent: Place, fibers: MarkedFibers) -> Expr:
    """Bind the rank of an element's coordinate within its fiber, and return it: a table has those of one
    fiber at a time."""
    name, recorder, arguments = axis.name, state.recorder, state.arguments
    count = arguments.integer(f"k_listed_{name}", fibers.total)
    table = recorder.compute(_table_size, fibers.coordinates)
    ranks = recorder.compute(np.empty, table, np.int32)
    arguments.array(f"STARTS_{name}", fibers.offsets, "int32", add(parent.size.expr, ONE))
    arguments.array(f"LISTED_{name}", fibers.coordinates, "int32", count.expr)
    size = arguments.integer(f"k_ranks_{name}", table)
    arguments.array(f"RANK_{name}", ranks, "int32", size.expr)
    fiber, first, slot = (index_var(f"{letter}_{name}") for letter in "gbs")
    coordinate = load(f"LISTED_{name}", slot, "int32")
    set_ranks = loop(
        slot.name,
        first,
        load(f"STARTS_{name}", add(fiber, ONE), "int32"),
        [store(f"RANK_{name}", coordinate, sub(slot, first), "int32")],
    )
    last, rank = f"FIBER_{name}", index_var(f"r_{name}")
    state.starts += cell(last, index(-1))
    state.bindings += [
        let(fiber.name, parent.slot),
        let(first.name, load(f"STARTS_{name}", fiber, "int32")),
        when(compare("ne", fiber, get_cell(last)), [set_cell(last, fiber), set_ranks]),
        let(rank.name, load(f"RANK_{name}", state.coordinates[axis.name], "int32")),
    ]
    return rank


def _table_size(coordinates: Array) -> int:
    """Return the number of coordinates up to the largest one."""
    return int(coordinates.max(initial=0)) + 1
