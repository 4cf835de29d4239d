"""Slots of fibers that are counted in parts of the elements, for several threads.

Each part counts how many of its elements each fiber has. Its slots in a fiber begin after those of the parts
before it, so that elements have the order that they have in one part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisSlot,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import size_value
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    cast,
    define_local,
    let,
    load,
    load_local,
    loop,
    offsets_facts,
    store,
    store_local,
)
from gossamer_formats.conversion.by_kernels.slots.listed_slots import (
    complete_slots,
    later_listed_slot,
    load_slot,
    new_slots,
    store_slot,
)
from gossamer_ir.core.build import ONE, ZERO, add, index_var, widen
from gossamer_ir.nodes import Expr, For, Load, Stmt, Store
from gossamer_support.arrays import Array

PART, PARTS = index_var("part"), index_var("parts")
"""A part of the elements, and the number of parts."""

BOUNDS, NEXT = "BOUNDS", "NEXT"
"""The arrays of the first iteration of each part, and of the next slot of each part in each fiber, which is
the number of its elements at first."""


class SlotsInParts(NamedTuple):
    """The slot of an element, and what binds it."""

    slot: Expr
    elements: ElementBindings


class _PartedLoops(NamedTuple):
    """The loops that count elements, and those that take their slots: the same loop is divided in both."""

    counting: For
    taking: For


def slots_in_parts(
    state: BuildState, axis_name: str, *, fibers: AxisSlot, offsets: ArrayArgument
) -> SlotsInParts | None:
    """Store the slots of all elements of an axis, and the ends of its fibers in `offsets`.

    None for one thread, or if parts do not pay.
    """
    requirements, recorder = state.requirements, state.recorder
    if requirements.threads == 1 or requirements.needs_one_kernel:
        return None
    values = state.source.value_count
    if not recorder.decide(_are_few, fibers.size.value, requirements.threads, values):
        return None
    name, dtype = f"SLOTS_{axis_name}", offsets.dtype
    slots = new_slots(state, values)
    loops = _loops(state, fibers, dtype, name=name, slots=slots)
    extent = None if loops is None else size_value(state.arguments, loops.counting.extent)
    if loops is None or extent is None:
        return None
    bounds = recorder.compute(_even_bounds, extent, requirements.threads)
    counts = recorder.compute(_no_counts, requirements.threads, fibers.size.value, dtype)
    facts = offsets_facts(BOUNDS, PARTS, loops.counting.extent)
    arguments = {
        **state.arguments.by_name,
        PARTS.name: requirements.threads,
        BOUNDS: ArrayArgument(bounds, "int64", (add(PARTS, ONE),), facts),
        NEXT: ArrayArgument(counts, dtype, (PARTS, fibers.size.expr)),
        "ENDS": offsets,
        name: slots,
    }
    count = [_in_parts(loops.counting), *_first_slots(fibers.size.expr, dtype)]
    run_kernel(recorder, count, arguments)
    run_kernel(recorder, [_in_parts(loops.taking)], arguments)
    complete = state.arguments.by_name[name] = complete_slots(name, slots)
    slot = index_var(f"r_{axis_name}")
    stmts = (let(slot.name, load_slot(name, complete)),)
    later = later_listed_slot(state, name, complete)
    return SlotsInParts(slot, ElementBindings(stmts=stmts, later=later))


def _are_few(fibers: int, parts: int, values: int) -> bool:
    """Return whether a part has more elements than fibers, which it adds up."""
    return fibers * parts * parts <= values


def _loops(
    state: BuildState,
    fibers: AxisSlot,
    dtype: str,
    *,
    name: str,
    slots: ArrayArgument,
) -> _PartedLoops | None:
    """Return the loops; None if the elements are not visited by the same loop from 0 in both kernels."""
    fiber, taken = index_var("fiber"), index_var("taken")
    at = (PART, fiber)
    bindings = [*state.elements.stmts, let(fiber.name, fibers.slot)]
    after = cast(add(_next(at, dtype), ONE), dtype)
    count = state.loop.around([*bindings, Store(NEXT, at, after)])
    take: list[Stmt] = [
        let(taken.name, _next(at, dtype)),
        Store(NEXT, at, cast(add(taken, ONE), dtype)),
        store_slot(name, taken, slots),
    ]
    match count, state.loop.around([*bindings, *take]):
        case (For() as first,), (For() as second,) if first.start == second.start == ZERO:
            if (first.var, first.extent) == (second.var, second.extent):
                return _PartedLoops(first, second)
    return None


def _next(at: tuple[Expr, ...], dtype: str) -> Expr:
    return widen(Load(NEXT, at, dtype))


def _in_parts(whole: For) -> For:
    """Return the loop over parts, in which one over the iterations of a part has the place of the whole
    loop."""
    begin, end = (load(BOUNDS, at, "int64") for at in (PART, add(PART, ONE)))
    part_loop = loop(whole.var, begin, end, whole.body)
    return loop(PART.name, ZERO, PARTS, [replace(part_loop, kind=whole.kind)])


def _first_slots(fibers: Expr, dtype: str) -> list[Stmt]:
    """Return the statements that store the first slot of each part in each fiber over its number of elements,
    and the ends of fibers."""
    fiber, part, count = index_var("f"), index_var("q"), index_var("count")
    at = (part, fiber)
    inner: list[Stmt] = [
        let(count.name, _next(at, dtype)),
        Store(NEXT, at, cast(load_local("SUM"), dtype)),
        store_local("SUM", add(load_local("SUM"), count)),
    ]
    body: list[Stmt] = [
        loop(part.name, ZERO, PARTS, inner),
        store("ENDS", add(fiber, ONE), load_local("SUM"), dtype),
    ]
    return [*define_local("SUM", ZERO), loop(fiber.name, ZERO, fibers, body)]


def _no_counts(parts: int, fibers: int, dtype: str) -> Array:
    return np.zeros((parts, fibers), dtype)


def _even_bounds(count: int, parts: int) -> Array:
    """Return the first of each part of some iterations, and their number.

    >>> _even_bounds(7, 2)
    array([0, 3, 7])
    """
    return np.arange(parts + 1, dtype=np.int64) * count // parts
