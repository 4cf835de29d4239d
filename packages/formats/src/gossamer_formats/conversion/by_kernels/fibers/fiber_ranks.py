"""The ranks of coordinates within their fibers: a table has those of one fiber at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import coordinate_along
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisSlot,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.fibers.marked_fibers import MarkedFibers
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    define_local,
    let,
    load,
    load_local,
    loop,
    store,
    store_local,
    when,
)
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.source.element_loop import VALUE_INDEX
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, sub
from gossamer_ir.nodes import Axis, Expr, InRange
from gossamer_support.arrays import Array


class FiberRank(NamedTuple):
    """The rank of an element's coordinate within its fiber, the first slot there, and what binds both."""

    rank: Expr
    first: Expr
    bindings: ElementBindings


def rank_in_fiber(
    state: BuildState, axis: Axis, *, parent: AxisSlot, fibers: MarkedFibers
) -> FiberRank:
    """Return the rank of an element's coordinate within its fiber."""
    if fibers.slots is not None:
        return _rank_of_slot(state, axis, parent=parent, fibers=fibers, slots=fibers.slots)
    name, recorder, arguments = axis.name, state.recorder, state.arguments
    count = arguments.integer(f"N_listed_{name}", fibers.total)
    table = recorder.compute(_table_size, fibers.coordinates)
    ranks = recorder.compute(np.empty, table, np.int32)
    arguments.array(f"STARTS_{name}", fibers.offsets, "int32", add(parent.size.expr, ONE))
    arguments.array(f"LISTED_{name}", fibers.coordinates, "int32", count.expr)
    size = arguments.integer(f"N_ranks_{name}", table)
    arguments.array(f"RANK_{name}", ranks, "int32", size.expr)
    fiber, first, slot = (index_var(f"{letter}_{name}") for letter in "gbh")
    coordinate = load(f"LISTED_{name}", slot, "int32")
    set_ranks = loop(
        slot.name,
        first,
        load(f"STARTS_{name}", add(fiber, ONE), "int32"),
        [store(f"RANK_{name}", coordinate, sub(slot, first), "int32")],
    )
    last, rank = f"FIBER_{name}", index_var(f"r_{name}")
    stmts = (
        let(fiber.name, parent.slot),
        let(first.name, load(f"STARTS_{name}", fiber, "int32")),
        when(compare("ne", fiber, load_local(last)), [store_local(last, fiber), set_ranks]),
        let(rank.name, load(f"RANK_{name}", coordinate_along(state, axis.name), "int32")),
    )
    return FiberRank(
        rank, first, ElementBindings(stmts=stmts, starts=define_local(last, index(-1)))
    )


def _rank_of_slot(
    state: BuildState,
    axis: Axis,
    *,
    parent: AxisSlot,
    fibers: MarkedFibers,
    slots: RecordedValue,
) -> FiberRank:
    """Return the rank of a slot that an array has for each element."""
    name, arguments = axis.name, state.arguments
    count = arguments.integer(f"N_listed_{name}", fibers.total).expr
    arguments.array(f"STARTS_{name}", fibers.offsets, "int32", add(parent.size.expr, ONE))
    facts = (InRange(f"SLOTS_{name}", ZERO, count),)
    arguments.array(f"SLOTS_{name}", slots, "int32", state.loop.size.expr, facts)
    first, rank = index_var(f"b_{name}"), index_var(f"r_{name}")
    slot = load(f"SLOTS_{name}", VALUE_INDEX, "int32")
    stmts = (
        let(first.name, load(f"STARTS_{name}", parent.slot, "int32")),
        let(rank.name, sub(slot, first)),
    )
    return FiberRank(rank, first, ElementBindings(stmts=stmts))


def _table_size(coordinates: Array) -> int:
    """Return the number of coordinates up to the largest one."""
    return int(coordinates.max(initial=0)) + 1
