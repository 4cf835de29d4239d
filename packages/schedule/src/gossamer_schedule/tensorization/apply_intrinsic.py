"""Replaces a loop nest by an intrinsic, for `tensorize` and `sparse_tensorize`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import spatial_loops
from gossamer_ir.core.annotations import INTRINSIC, REASSOCIATES
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.dependence.disjointness import disjointness, written_accesses
from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.nodes import Block, Expr, For, Function, If, Stmt, Store
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rename import with_names
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.program_points import point_in_function
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.errors import quote, schedule_error, text_of
from gossamer_schedule.predicates.for_all_iterations import for_all_iterations
from gossamer_schedule.tensorization.implementation import (
    implementation_body,
    is_contiguous,
    vector_loops,
)
from gossamer_schedule.tensorization.intrinsic import ParsedIntrinsic, find_intrinsic, matched_loops
from gossamer_schedule.tensorization.outer_block import outer_block, required_single_block
from gossamer_schedule.tensorization.unify import BufferBinding, Match, matches_of


class StoreNest(msgspec.Struct, frozen=True):
    """A store in a loop nest, in terms of the loops and of variables bound outside.

    Loops with one iteration are left out.
    """

    cursor: Cursor[Block]
    name: str
    loops: tuple[For, ...]
    store: Store
    conditions: tuple[Expr, ...]


def with_intrinsic(
    root: Cursor[Function],
    loop_name: str,
    *,
    intrinsic: str,
    intrinsics: Sequence[Intrinsic],
    is_sparse: bool,
) -> Change:
    """Replace the nest of a loop by an intrinsic.

    The loops remain for the case that their block does not run in all iterations. If `is_sparse`, the nest
    may load through index arrays.
    """
    top = find_loop(root, loop=loop_name)

    parsed = find_intrinsic(intrinsics, intrinsic, cursor=top)
    nest = _required_nest(top)
    match = _required_match(nest, parsed)
    _require_direct(nest, match, is_sparse=is_sparse)
    _require_own_elements(nest, parsed, match)
    _require_facts(nest, parsed, match)
    # The implementation computes the whole tile, so it runs only where all points of the tile do.
    complete = _required_full_condition(nest)

    namer = namer_of(root.function)
    implementation = implementation_body(parsed.implementation, match, namer=namer)

    def instead(loops: For) -> tuple[Stmt, ...]:
        return implementation if complete is None else (If(complete, implementation, (loops,)),)

    wrapped = outer_block(nest.cursor, top, namer=namer, instead=instead)
    # An implementation may combine the terms of a reduction in any order.
    marks = ((REASSOCIATES, True), (INTRINSIC, parsed.mark))
    outer = replace(wrapped.outer, annotations=marks)
    rewritten = top.replace_with((outer,))

    iters = (iterator.var for iterator in outer.iters)
    return Change(rewritten, (outer.name, *iters, *wrapped.init_names))


def _required_nest(top: Cursor[For]) -> StoreNest:
    """Return the store in the loops from `top` down, or refuse a loop that contains anything else."""
    cursor = required_single_block(top)
    block = cursor.node
    loops = cursor.nest[len(top.nest) :]
    for loop in loops:
        if loop.kind not in ("serial", "unrolled") or integer_value(loop.start) != 0:
            raise schedule_error(
                f"{top.primitive}.kind",
                f"Loop '{loop.var}' is {loop.kind} and starts at {text_of(loop.start)}; {top.primitive} "
                "replaces serial and unrolled loops that start at 0.",
                place=top.place,
            )
    if len(block.body) != 1 or not isinstance(block.body[0], Store):
        raise schedule_error(
            f"{top.primitive}.store",
            f"Block '{block.name}' does not consist of one store.",
            place=cursor.place,
        )
    loops, values = matched_loops(loops, block)
    conditions = tuple(resolve(part, values) for part in conjuncts(block.predicate))
    return StoreNest(cursor, top.node.var, loops, resolve(block.body[0], values), conditions)


def _required_match(nest: StoreNest, parsed: ParsedIntrinsic) -> Match:
    """Return a match of the nest with the description of the intrinsic.

    Elements that the implementation accesses as vectors must be contiguous.
    """
    candidates = list(matches_of(parsed.store, parsed.loops, nest.store, nest.loops))
    if not candidates:
        raise schedule_error(
            f"{nest.cursor.primitive}.match",
            f"Loop '{nest.name}' computes {_nest_text(nest.loops, nest.store)}; intrinsic "
            f"'{parsed.name}' computes {_nest_text(parsed.loops, parsed.store)}.",
            hint="They must be equal up to names, the order of loops, and the locations of elements.",
            place=nest.cursor.place,
        )
    contiguous = [match for match in candidates if _has_contiguous_vectors(parsed, match)]
    if not contiguous:
        vectors = vector_loops(parsed.implementation, candidates[0])
        uses = (f"'{name}' along '{at}'" for name, loops in vectors.items() for at in sorted(loops))
        raise schedule_error(
            f"{nest.cursor.primitive}.layout",
            f"Intrinsic '{parsed.name}' needs contiguous elements of {', '.join(uses)}; "
            f"loop '{nest.name}' computes {_nest_text(nest.loops, nest.store)}.",
            hint="Change the layout of a buffer that is not contiguous there, or cache it.",
            place=nest.cursor.place,
        )
    return contiguous[0]


def _has_contiguous_vectors(parsed: ParsedIntrinsic, match: Match) -> bool:
    vectors = vector_loops(parsed.implementation, match)
    return all(
        is_contiguous(match.bindings[name], loop) for name in vectors for loop in vectors[name]
    )


def _nest_text(loops: Sequence[For], store: Store) -> str:
    """Return the loops and the store as one line of text."""
    around = ", ".join(f"{loop.var} < {text_of(loop.extent)}" for loop in loops)
    at = ", ".join(map(text_of, store.indices))
    return f"{store.buffer}[{at}] = {text_of(store.value)} for {around}"


def _require_direct(nest: StoreNest, match: Match, *, is_sparse: bool) -> None:
    """Refuse indices that the nest may change, and unless `is_sparse`, those loaded from index arrays."""
    changing = {nest.store.buffer}
    loops = {loop.var for loop in nest.loops}
    for binding in match.bindings.values():
        indirect = [at for at in binding.indices if buffers_accessed(at) and free_vars(at) & loops]
        if indirect and not is_sparse:
            raise schedule_error(
                f"{nest.cursor.primitive}.indirect",
                f"Elements of '{binding.buffer}' are selected by {text_of(indirect[0])}, which is read from "
                "an index array.",
                hint="Use sparse_tensorize, which reads through index arrays.",
                place=nest.cursor.place,
            )
    used = (
        *match.scalars.values(),
        *(at for binding in match.bindings.values() for at in binding.indices),
    )
    if buffers_accessed(*used, *nest.conditions) & changing:
        raise schedule_error(
            f"{nest.cursor.primitive}.not_proved",
            f"Cannot prove that loop '{nest.name}' does not change its own indices and conditions.",
            needs=f"{', '.join(sorted(changing))} is not read there",
            place=nest.cursor.place,
        )


def _require_own_elements(nest: StoreNest, parsed: ParsedIntrinsic, match: Match) -> None:
    """Refuse a nest in which several points may write one element, or that reads other elements of the
    buffer it writes."""
    binding = match.bindings[parsed.store.buffer]
    _require_no_alias(nest, binding, match)
    _require_no_shared_init(nest, binding)
    shared = _sharing_loops(nest, binding)
    if shared:
        at = ", ".join(map(text_of, binding.indices))
        raise schedule_error(
            f"{nest.cursor.primitive}.not_proved",
            f"Cannot prove that iterations of '{shared[0]}' select different elements of "
            f"'{binding.buffer}'.",
            needs=f"[{at}] is a different element in each iteration of '{shared[0]}'",
            place=nest.cursor.place,
        )


def _require_no_alias(nest: StoreNest, binding: BufferBinding, match: Match) -> None:
    """Refuse a nest that reads elements of the buffer it writes by another operand."""
    others = [other for other in match.bindings.values() if other is not binding]
    handles = {
        buffer.name: buffer.handle or buffer.name for buffer in all_buffers(nest.cursor.function)
    }
    # An intrinsic may read and write in any order, so its output may not be one of its inputs.
    if any(handles[other.buffer] == handles[binding.buffer] for other in others):
        raise schedule_error(
            f"{nest.cursor.primitive}.alias",
            f"Loop '{nest.name}' also reads other elements of '{binding.buffer}', which it writes.",
            place=nest.cursor.place,
        )


def _require_no_shared_init(nest: StoreNest, binding: BufferBinding) -> None:
    """Refuse a nest with an init that several points of its spatial loops share."""
    spatial = spatial_loops(nest.cursor.node, values_at(nest.cursor))
    accumulating = [loop.var for loop in nest.loops if loop.var in spatial - set(binding.loops)]
    if accumulating and nest.cursor.node.init:
        raise schedule_error(
            f"{nest.cursor.primitive}.init",
            f"Iterations of the spatial loop '{accumulating[0]}' initialize the same elements of "
            f"'{binding.buffer}'.",
            hint="Apply decompose_reduction before.",
            place=nest.cursor.place,
        )


def _require_facts(nest: StoreNest, parsed: ParsedIntrinsic, match: Match) -> None:
    """Refuse a nest for whose buffers the function does not state the facts that the intrinsic requires."""
    names = {name: binding.buffer for name, binding in match.bindings.items()}
    for fact in parsed.semantics.facts:
        required = with_names(fact, names)
        if required not in nest.cursor.function.facts:
            raise schedule_error(
                f"{nest.cursor.primitive}.facts",
                f"Intrinsic '{parsed.name}' requires the fact '{type(fact).__name__}' about "
                f"{quote(buffers_of_fact(required))}, which the function does not state.",
                hint="Declare it with T.assume, or as a property of the axis.",
                place=nest.cursor.place,
            )


def _sharing_loops(nest: StoreNest, binding: BufferBinding) -> list[str]:
    """Return the loops that select elements, of which two iterations may share an element."""
    cursor, varying = nest.cursor, {loop.var for loop in nest.loops}
    written = written_accesses((cursor.node,), values=values_at(cursor), function=cursor.function)
    accesses = written[binding.buffer]
    return [
        name
        for name in binding.loops
        if name is not None
        and disjointness(name, accesses, varying=varying, function=cursor.function) != "disjoint"
    ]


def _required_full_condition(nest: StoreNest) -> Expr | None:
    """Return the condition under which the block runs in all iterations; None if it always does."""
    point = point_in_function(nest.cursor.function)
    for loop in nest.cursor.loops:
        point.assume_loop(loop)
    conditions = for_all_iterations(nest.conditions, nest.loops, point=point)
    if conditions is None:
        predicate = nest.cursor.node.predicate
        assert predicate is not None, "without a predicate there is no condition"
        raise schedule_error(
            f"{nest.cursor.primitive}.predicate",
            f"The condition under which block '{nest.cursor.node.name}' runs in all iterations of loop "
            f"'{nest.name}' is not known; its predicate is {text_of(predicate)}.",
            place=nest.cursor.place,
        )
    return conjunction(*conditions)
