"""What `tensorize` and `sparse_tensorize` have in common: a loop nest becomes an intrinsic's emission."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import spatial_loops
from gossamer_ir.core.build import conjoined, conjuncts, integer_value
from gossamer_ir.dependence.disjointness import verdict, written_accesses
from gossamer_ir.interchange.records import Intrinsic, Step
from gossamer_ir.nodes import Block, Expr, For, If, Module, Stmt, Store
from gossamer_ir.traversal.effects import all_buffers
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import free_vars, resolve
from gossamer_schedule.bounds.for_all_iterations import for_all_iterations
from gossamer_schedule.bounds.prover import point_in
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_function,
    find_loop,
    require_stage,
)
from gossamer_schedule.dependence.access import mentioned, values_at
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.reductions.reassociation import REASSOCIATES
from gossamer_schedule.result import Result
from gossamer_schedule.step.recorded import step
from gossamer_schedule.tensorization.blockize import blocked, require_one_block
from gossamer_schedule.tensorization.emit import emitted, is_run, vector_loops
from gossamer_schedule.tensorization.intrinsic import (
    INTRINSIC,
    Described,
    find_intrinsic,
    unit_values,
)
from gossamer_schedule.tensorization.unify import Match, View, matches


class StoreNest(msgspec.Struct, frozen=True):
    """Loops, but for those of one iteration, around a block that is one store, which is in terms of these
    loops and of what is outside."""

    cursor: Cursor
    name: str
    loops: tuple[For, ...]
    store: Store
    conditions: tuple[Expr, ...]


def in_emission(
    module: Module,
    loop: str,
    *,
    intrinsic: str,
    intrinsics: Sequence[Intrinsic],
    function: str | None,
    op: str,
    is_sparse: bool,
) -> Result:
    """The nest of a loop, computed by the emission of an intrinsic wherever it is whole; `is_sparse` says
    whether elements may be read through index arrays."""
    require_stage(module, op, stages=LOOP_STAGES)
    root = find_function(module, op, function=function)
    top = find_loop(root, loop=loop)

    described = find_intrinsic(intrinsics, intrinsic, at=top)
    nest = _require_nest(top)
    match = _require_match(nest, described)
    _require_direct(nest, match, is_sparse=is_sparse)
    _require_own_elements(nest, described, match)
    whole = _require_whole(nest)

    namer = namer_of(root.function)
    emission = emitted(described.emission, match, namer=namer)

    def instead(held: For) -> tuple[Stmt, ...]:
        return emission if whole is None else (If(whole, emission, (held,)),)

    made = blocked(nest.cursor, top, namer=namer, instead=instead)
    marks = ((REASSOCIATES, True), (INTRINSIC, described.mark))
    outer = replace(made.outer, annotations=marks)
    rewritten = top.replaced_by((outer,)).module

    taken = step(loop=loop, intrinsic=intrinsic, function=function)
    iters = (found.var for found in outer.iters)
    return Result(rewritten, (outer.name, *iters, *made.init_names), Step(op, taken))


def _require_nest(top: Cursor) -> StoreNest:
    cursor = require_one_block(top)
    block: Block = cursor.node
    loops = cursor.nest[len(top.nest) :]
    for loop in loops:
        if loop.kind not in ("serial", "unrolled") or integer_value(loop.start) != 0:
            raise schedule_error(
                f"{top.primitive}.kind",
                f"Loop '{loop.var}' is {loop.kind} and starts at {text_of(loop.start)}, and {top.primitive} "
                "replaces serial and unrolled loops that start at 0.",
                place=top.place,
            )
    if len(block.body) != 1 or not isinstance(block.body[0], Store):
        raise schedule_error(
            f"{top.primitive}.store",
            f"Block '{block.name}' is not one store.",
            place=cursor.place,
        )
    values = {found.var: found.value for found in block.iters} | unit_values(loops)
    loops = tuple(loop for loop in loops if loop.var not in values)
    conditions = tuple(resolve(part, values) for part in conjuncts(block.predicate))
    return StoreNest(cursor, top.node.var, loops, resolve(block.body[0], values), conditions)


def _require_match(nest: StoreNest, described: Described) -> Match:
    """The way in which the nest is what the intrinsic computes, what the intrinsic uses in vectors being
    runs of elements."""
    found = list(matches(described.store, described.loops, nest.store, nest.loops))
    if not found:
        raise schedule_error(
            f"{nest.cursor.primitive}.match",
            f"Loop '{nest.name}' does {_said(nest.loops, nest.store)}, and intrinsic "
            f"'{described.name}' does {_said(described.loops, described.store)}.",
            hint="They must be the same up to names, the order of loops, and where elements are.",
            place=nest.cursor.place,
        )
    fitting = [match for match in found if _is_laid_out(described, match)]
    if not fitting:
        vectors = vector_loops(described.emission, found[0])
        uses = (f"'{name}' along '{at}'" for name, loops in vectors.items() for at in sorted(loops))
        raise schedule_error(
            f"{nest.cursor.primitive}.layout",
            f"Intrinsic '{described.name}' uses elements that are next to each other: of "
            f"{', '.join(uses)}; loop '{nest.name}' does {_said(nest.loops, nest.store)}.",
            hint="Change the layout, or cache what is not.",
            place=nest.cursor.place,
        )
    return fitting[0]


def _is_laid_out(described: Described, match: Match) -> bool:
    vectors = vector_loops(described.emission, match)
    return all(is_run(match.views[name], loop) for name in vectors for loop in vectors[name])


def _said(loops: Sequence[For], store: Store) -> str:
    """The loops and the store in one line."""
    around = ", ".join(f"{loop.var} < {text_of(loop.extent)}" for loop in loops)
    at = ", ".join(map(text_of, store.indices))
    return f"{store.buffer}[{at}] = {text_of(store.value)} for {around}"


def _require_direct(nest: StoreNest, match: Match, *, is_sparse: bool) -> None:
    """What selects elements is not written, and is not read from index arrays but where it may be."""
    changing = {nest.store.buffer}
    loops = {loop.var for loop in nest.loops}
    for view in match.views.values():
        indirect = [at for at in view.indices if mentioned((at,)) and free_vars(at) & loops]
        if indirect and not is_sparse:
            raise schedule_error(
                f"{nest.cursor.primitive}.indirect",
                f"Elements of '{view.buffer}' are selected by {text_of(indirect[0])}, which is read from "
                "an index array.",
                hint="sparse_tensorize reads through index arrays.",
                place=nest.cursor.place,
            )
    used = (*match.scalars.values(), *(at for view in match.views.values() for at in view.indices))
    if mentioned((*used, *nest.conditions)) & changing:
        raise schedule_error(
            f"{nest.cursor.primitive}.not_proved",
            f"It is not proved that what selects elements stays the same in loop '{nest.name}'.",
            needs=f"{', '.join(sorted(changing))} is not read there",
            place=nest.cursor.place,
        )


def _require_own_elements(nest: StoreNest, described: Described, match: Match) -> None:
    """Different points select different elements of what is written, which nothing else views."""
    view = match.views[described.store.buffer]
    others = [found for found in match.views.values() if found is not view]
    handles = {
        found.name: found.handle or found.name for found in all_buffers(nest.cursor.function)
    }
    if any(handles[found.buffer] == handles[view.buffer] for found in others):
        raise schedule_error(
            f"{nest.cursor.primitive}.alias",
            f"Loop '{nest.name}' also reads other elements of '{view.buffer}', which it writes.",
            place=nest.cursor.place,
        )
    spatial = spatial_loops(nest.cursor.node, values_at(nest.cursor))
    adding = [loop.var for loop in nest.loops if loop.var in spatial - set(view.loops)]
    if adding and nest.cursor.node.init:
        raise schedule_error(
            f"{nest.cursor.primitive}.init",
            f"Iterations of the spatial loop '{adding[0]}' initialise the same elements of "
            f"'{view.buffer}'.",
            hint="Apply decompose_reduction before.",
            place=nest.cursor.place,
        )
    shared = _sharing(nest, view)
    if shared:
        at = ", ".join(map(text_of, view.indices))
        raise schedule_error(
            f"{nest.cursor.primitive}.not_proved",
            f"It is not proved that points of '{shared[0]}' select different elements of "
            f"'{view.buffer}'.",
            needs=f"[{at}] is another element in each iteration of '{shared[0]}'",
            place=nest.cursor.place,
        )


def _sharing(nest: StoreNest, view: View) -> list[str]:
    """The loops that select elements of which points may share some."""
    cursor, varying = nest.cursor, {loop.var for loop in nest.loops}
    touched = written_accesses((cursor.node,), values=values_at(cursor), function=cursor.function)
    found = touched[view.buffer]
    return [
        name
        for name in view.loops
        if name is not None
        and verdict(name, found, varying=varying, function=cursor.function) != "disjoint"
    ]


def _require_whole(nest: StoreNest) -> Expr | None:
    """The condition under which the block runs in all iterations; None where it always does."""
    point = point_in(nest.cursor.function)
    for loop in nest.cursor.loops:
        point.assume_loop(loop)
    found = for_all_iterations(nest.conditions, nest.loops, point=point)
    if found is None:
        raise schedule_error(
            f"{nest.cursor.primitive}.predicate",
            f"Where block '{nest.cursor.node.name}' runs in all iterations of loop "
            f"'{nest.name}' does not follow from its condition "
            f"{text_of(nest.cursor.node.predicate)}.",
            place=nest.cursor.place,
        )
    return conjoined(found)
