"""Checks that inits have the same effect after loops are rewritten.

A block's init runs just before its outermost reduction loop. A transformation that moves a loop across that
point is legal only if different iterations of the loop initialize different elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import chain, permutations, takewhile

from gossamer_ir.analysis.accesses.init_nests import (
    init_dependences,
    reduction_loops,
    spatial_loops,
)
from gossamer_ir.analysis.bounds.loops_by_name import loops_within
from gossamer_ir.analysis.invariants import buffers_written_in
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.dependence.disjointness import disjointness, written_accesses
from gossamer_ir.dependence.init_conflicts import inits_may_conflict
from gossamer_ir.nodes import Block, Expr, For
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import walk
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.variable_values import values_at, values_in_block
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.races import are_iterations_apart, difference_text
from gossamer_schedule.nests.block_nest import BlockNest, enclosing_loops_and_conditions


def blocks_with_init(top: Cursor[object]) -> Iterator[Cursor[Block]]:
    """Yield cursors at the blocks with an init in a loop, without blocks inside other blocks."""
    for cursor in top.below():
        # Inits inside of another block belong to that block's own rewriting.
        between = cursor.parents[len(top.path) :]
        is_own = not any(isinstance(parent, Block) for parent in between)
        if is_own and isinstance(cursor.node, Block) and cursor.node.init:
            yield cursor


def reinitializing_loops(cursor: Cursor[Block], among: Set[str]) -> set[str]:
    """Return the loops, of those given, in which a block may initialize an element in several iterations.

    The init then runs before the outermost of them, once for each element.
    """
    loops, values = cursor.loops_in_block, values_in_block(cursor)
    reinitializing: set[str] = set()
    for depth, loop in enumerate(loops):
        between = chain(loops[depth + 1 :], _conditions_within(cursor, loop))
        if loop.var in among and inits_may_conflict(
            loop, cursor.node, between, values=values, function=cursor.function
        ):
            reinitializing.add(loop.var)
    return reinitializing


def _conditions_within(cursor: Cursor[object], loop: For) -> Iterator[Expr]:
    """Yield the conditions between a loop around a block and the block."""
    parts = enclosing_loops_and_conditions(cursor)
    inside = next((number for number, part in enumerate(parts) if part is loop), len(parts))
    yield from (part for part in parts[inside:] if not isinstance(part, For))


def loops_outside_reductions(loops: Sequence[For], reducing: Set[str]) -> set[str]:
    """Return the loops of a nest, given outermost first, that are outside all reduction loops."""
    return {loop.var for loop in takewhile(lambda loop: loop.var not in reducing, loops)}


def require_inits_in_place(top: Cursor[For], crossing: Callable[[Set[str]], Set[str]]) -> None:
    """Refuse a rewriting of the loop at `top` unless the inits inside keep their effect.

    `crossing` returns, for a set of reduction loops, the loops that move out of or into them.

    Raises `.not_proved`.
    """
    for cursor in blocks_with_init(top):
        reducing = reduction_loops(cursor.node, values_at(cursor))
        if not any(loop.var in reducing for loop in top.loops_in_block):
            require_same_effect(cursor, top, crossing(reducing))


def require_inits_with_added_factors(
    fed: Cursor[object], feeding: Set[str], factors: Iterable[Expr]
) -> None:
    """Refuse a rewriting of the loop at `fed` that adds factors to the iterators that `feeding` loops feed.

    It is legal if inits have the same effect when they run outside of the loops that the factors use.

    Raises `.not_proved`.
    """
    values = values_at(fed)
    used = free_vars(*(resolve(factor, values) for factor in factors))
    top = _outermost_loop_among(fed, used)
    if top is None:
        return
    for cursor in blocks_with_init(fed):
        reducing = reduction_loops(cursor.node, values_at(cursor))
        if reducing.isdisjoint(feeding):
            require_points_kept(cursor, used)
            continue
        _require_no_conditions(cursor, used)
        _require_init_without(cursor, used - reducing)
        if not any(loop.var in reducing for loop in top.loops_in_block):
            crossed = loops_outside_reductions(
                fed.loops_in_block[len(top.loops_in_block) :], reducing
            )
            require_same_effect(cursor, top, crossed)


def _require_init_without(cursor: Cursor[Block], feeding: Set[str]) -> None:
    """Refuse an init that uses loops that come to feed the reduction: it would run before them.

    Raises `.not_proved`.
    """
    for name in sorted(free_vars(*cursor.node.init) & feeding):
        raise schedule_error(
            f"{cursor.primitive}.not_proved",
            f"The init of block '{cursor.node.name}' uses loop '{name}', outside of which it would run.",
            needs=f"the init does not use '{name}'",
            hint="Apply decompose_reduction before.",
            place=cursor.place,
        )


def require_points_kept(cursor: Cursor[Block], feeding: Set[str]) -> None:
    """Refuse a rewriting after which further loops feed the iterators of a block.

    The init then runs once for all iterations of the loops that fed no iterator before. The rewriting is
    legal if this has the same effect.

    Raises `.not_proved`.
    """
    values = values_at(cursor)
    before = reduction_loops(cursor.node, values) | spatial_loops(cursor.node, values)
    added = {loop.var for loop in cursor.loops_in_block if loop.var in feeding - before}
    top = _outermost_loop_among(cursor, added)
    if top is not None:
        require_same_effect(cursor, top, added)


def require_init_in_copies(cursor: Cursor[Block], selecting: Set[str]) -> None:
    """Refuse copies of a block for different iterations of the `selecting` loops, if they share elements.

    Each copy has an init, which would reset an element that another copy has started to reduce.

    Raises `.not_proved`.
    """
    scope = {loop.var for loop in cursor.loops_in_block}
    # The init runs once per iteration of the loops around this one, for all iterations inside it.
    sharing = reinitializing_loops(cursor, scope) | reduction_loops(cursor.node, values_at(cursor))
    top = _outermost_loop_among(cursor, sharing)
    if top is not None:
        inside = {top.node.var} | (scope - {loop.var for loop in top.loops_in_block})
        require_same_effect(cursor, top, selecting & inside)


def _outermost_loop_among(cursor: Cursor[object], names: Set[str]) -> Cursor[For] | None:
    """Return the outermost loop around a cursor, in the same block, that has one of some names."""
    loop = next((loop for loop in cursor.loops_in_block if loop.var in names), None)
    return next(
        (ancestor for ancestor in map(cursor.up, range(len(cursor.path))) if ancestor.node is loop),
        None,
    )


def require_init_of_nest(nest: BlockNest) -> None:
    """Refuse a nest if the init of its block runs before a loop around the nest.

    Iterations of that loop then continue the reduction of one element, instead of initializing it again.

    Raises `.not_proved`.
    """
    cursor = nest.block
    beyond = {loop.var for loop in nest.top.loops_in_block}
    if cursor.node.init and (reinitializing := reinitializing_loops(cursor, beyond)):
        loop = min(reinitializing)
        raise schedule_error(
            f"{nest.block.primitive}.not_proved",
            f"Cannot prove that iterations of loop '{loop}' initialize different elements; the init of "
            f"block '{cursor.node.name}' must run once per element.",
            needs=f"a different element in each iteration of {loop}",
            hint=f"Only loops may stand between loop '{loop}' and the block.",
        )


def require_independent_inits(top: Cursor[object]) -> None:
    """Refuse a rewriting that exchanges the inits of different blocks in the loop at `top`.

    It is legal if none of these inits, which all run before a reduction loop, accesses what another writes.

    Raises `.not_proved`.
    """
    hoisted = [
        cursor
        for cursor in blocks_with_init(top)
        if reduction_loops(cursor.node, values_at(cursor))
    ]
    for first, second in permutations(hoisted, 2):
        writes = [buffers_written_in(cursor.node.init, top.function) for cursor in (first, second)]
        shared = writes[0] & (writes[1] | buffers_read_by_init(second))
        if shared:
            raise schedule_error(
                f"{top.primitive}.not_proved",
                f"Cannot prove that the inits of the blocks '{first.node.name}' and "
                f"'{second.node.name}' may run in another order.",
                needs=f"they use different elements of {', '.join(sorted(shared))}",
                hint="Apply decompose_reduction before.",
                place=second.place,
            )


def _require_no_conditions(cursor: Cursor[Block], fed: Set[str]) -> None:
    """Refuse conditions on loops that come to feed a reduction: these do not run for its init."""
    idle, values = fed - init_dependences(enclosed_block(cursor)), values_at(cursor)
    for condition in BlockNest(cursor, enclosing_loops_and_conditions(cursor)).conditions:
        about = sorted(free_vars(resolve(condition, values)) & idle)
        if about:
            raise schedule_error(
                f"{cursor.primitive}.not_proved",
                f"The init of block '{cursor.node.name}' would run without loop '{about[0]}', and stands "
                "under a condition on it.",
                needs=f"{text_of(condition)} for all values of {about[0]}",
                hint="Apply decompose_reduction before.",
                place=cursor.place,
            )


def require_same_effect(cursor: Cursor[Block], top: Cursor[For], crossed: Set[str]) -> None:
    """Refuse the init of a block unless different iterations of the `crossed` loops initialize different
    elements. These loops are the one at `top` or inside it.

    Raises `.not_proved`.
    """
    if not crossed:
        return
    varying = loops_within((top.node,))
    accesses = written_accesses(top.node.body, values=values_at(top), function=top.function)
    _require_allocated_outside(cursor, top)
    for buffer in sorted(_buffers_used_by_init(cursor) & accesses.keys()):
        for loop in sorted(crossed):
            used = accesses[buffer]
            is_own = disjointness(loop, used, varying=varying, function=top.function) == "disjoint"
            if not is_own and not (loop == top.node.var and are_iterations_apart(top, buffer)):
                raise schedule_error(
                    f"{cursor.primitive}.not_proved",
                    f"Cannot prove that the init of block '{cursor.node.name}' may run before all "
                    f"iterations of loop '{loop}' as well as in each of them.",
                    needs=difference_text(loop, used, varying=varying),
                    hint="Apply decompose_reduction before.",
                    place=cursor.place,
                )


def _require_allocated_outside(cursor: Cursor[Block], top: Cursor[For]) -> None:
    """Refuse an init that uses a buffer allocated in the loop at `top`: it would run before that loop."""
    for name in sorted(buffers_allocated(top.node.body) & _buffers_used_by_init(cursor)):
        raise schedule_error(
            f"{cursor.primitive}.not_proved",
            f"The init of block '{cursor.node.name}' would run before loop '{top.node.var}', in which "
            f"'{name}' is allocated.",
            needs=f"'{name}' is allocated outside of loop '{top.node.var}'",
            hint="Apply decompose_reduction before.",
            place=cursor.place,
        )


def buffers_read_by_init(cursor: Cursor[Block]) -> set[str]:
    """Return the buffers that the init of a block reads, or that determine where it runs."""
    parts = (*cursor.node.init, *effects_of(cursor.node).evaluates)
    loads = (node for part in parts for node in walk(part) if isinstance(node, READS))
    return {load.buffer for load in loads}


def _buffers_used_by_init(cursor: Cursor[Block]) -> frozenset[str]:
    """Return the buffers that an init uses, and those that determine where it runs."""
    block = cursor.node
    outside = cursor.parents[1:]  # the first one is the function
    around = (part for parent in outside for part in effects_of(parent).evaluates)
    return buffers_accessed(
        *block.init, *effects_of(block).evaluates, *around, *values_at(cursor).values()
    )
