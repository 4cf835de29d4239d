"""`decompose_reduction`: split a reduction block into an init block and an update block."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import takewhile

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import LoopOrCondition, reduction_loops
from gossamer_ir.analysis.bounds.loops_by_name import loops_within
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.dependence.disjointness import disjointness
from gossamer_ir.nodes import Block, Expr, For, Function
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor_at import Cursor, function_with_replaced
from gossamer_schedule.cursor.find import find_block, find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.used_buffers import buffers_used_by, stmts_beside
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error
from gossamer_schedule.nests.block_nest import BlockNest, required_enclosing_nest
from gossamer_schedule.nests.init_checks import (
    blocks_with_init,
    buffers_read_by_init,
    reinitializing_loops,
)
from gossamer_schedule.nests.init_nest import init_nest, required_init_nest
from gossamer_schedule.staging.cache_checks import require_allocated_outside


@primitive(stages=LOOP_STAGES)
def decompose_reduction(
    root: Cursor[Function], block: str, *, loop: str, function: str | None = None
) -> Change:
    """Move the `init` of a block into a new block `<block>_init`, directly before a loop around the block.

    The new block stands in loops `<l>_init`, one for each loop from `loop` down to the block, except those
    that feed only reduction iterators that the init does not use. Conditions between the loops are kept
    unless they depend on such a loop. If a kept loop also feeds the reduction, or only determines the
    extent of another kept loop, elements are initialized several times. The result's names are the new
    block and its loops.

    Raises `ScheduleError` with a code `schedule.decompose_reduction.*`:

    * `.no_init`: the block has no init
    * `.not_enclosing`: the loop is not around the block, or other statements are in between
    * `.too_deep`: a reduction loop encloses the loop
    * `.inner`: a buffer of the init is allocated in the loop
    * `.dependence`: the init or its loops depend on a let or on the reduction
    * `.not_proved`: an element may be initialized too often or is used elsewhere in the loop, or a buffer
      that the init reads is written there

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(ROW_SUM))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    >>> print(body_text(decompose_reduction(ROW_SUM, "row_sum", loop="j").module))
    for i in T.serial(m):
        with T.block("row_sum_init"):
            vi_init = T.axis.spatial(m, i)
            Y[vi_init] = 0.0
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    """
    cursor = find_block(root, block=block)
    top = find_loop(root, loop=loop)

    _require_init(cursor)
    nest = required_enclosing_nest(cursor, top)
    _require_outside_reduction(cursor, top)
    kept = required_init_nest(cursor, nest.enclosing)
    # The new nest evaluates these bounds and conditions before anything in the old one has run.
    read_around = {name for part in kept for name in buffers_accessed(*_bounds_or_condition(part))}
    for name in sorted(buffers_accessed(*cursor.node.init) | read_around):
        require_allocated_outside(nest, name)
    _require_init_may_leave(nest, read_around)

    inits, names = init_nest(cursor, kept, namer=namer_of(root.function))
    # The block goes on from the values that the new nest stores.
    update = replace(cursor.node, init=())

    updates = find_loop(cursor.replace_with((update,)), loop=loop)
    changed = function_with_replaced(updates, (*inits, updates.node))
    return Change(root.with_function(changed), names)


def _require_init(cursor: Cursor[Block]) -> None:
    """Refuse a block without an init: it may go on from values in the buffer, which a new init would
    overwrite."""
    if not cursor.node.init:
        raise schedule_error(
            "decompose_reduction.no_init",
            f"Block '{cursor.node.name}' has no init.",
            place=cursor.place,
        )


def _require_outside_reduction(cursor: Cursor[Block], top: Cursor[For]) -> None:
    """Refuse a loop inside a reduction loop, or inside one whose iterations may initialize one element.

    The new block would run in each iteration of that loop, and discard what earlier ones have reduced.
    """
    fed = reduction_loops(cursor.node, values_at(cursor))
    reinitializing = reinitializing_loops(cursor, {around.var for around in top.loops_in_block})
    for outer in top.loops_in_block:
        if outer.var in reinitializing:
            raise schedule_error(
                "decompose_reduction.not_proved",
                f"Cannot prove that iterations of loop '{outer.var}' initialize different elements; the "
                f"init of block '{cursor.node.name}' must run once per element.",
                needs=f"a different element in each iteration of '{outer.var}'",
                hint=f"Decompose at '{outer.var}' or a loop around it.",
            )
        if outer.var in fed:
            raise schedule_error(
                "decompose_reduction.too_deep",
                f"Loop '{top.node.var}' is inside reduction loop '{outer.var}' of block "
                f"'{cursor.node.name}'.",
                hint=f"Decompose at '{outer.var}' or a loop around it.",
            )


def _require_init_may_leave(nest: BlockNest, read_around: set[str]) -> None:
    """Refuse an init that may not run before `top` instead of before the outermost reduction loop.

    Each iteration of the loops in between must initialize elements of its own, which nothing else in `top`
    uses. Nothing there may write a buffer that the init reads, or that its loops and conditions read
    (`read_around`).
    """
    cursor, top = nest.block, nest.top
    fed = reduction_loops(cursor.node, values_at(cursor))
    # Loops inside of `top` but outside of the reduction: the init moves out of these.
    between = [loop.var for loop in takewhile(lambda loop: loop.var not in fed, nest.loops)]
    # The init already runs before this loop, so only its order among other inits changes.
    if not between:
        _require_independent_inits(cursor, top)
        return
    buffers = outer_writes(cursor.node.init)
    if not _may_leave(nest, between, buffers=buffers, read_around=read_around):
        raise schedule_error(
            "decompose_reduction.not_proved",
            f"Cannot prove that the init of block '{cursor.node.name}' may run before loop "
            f"'{top.node.var}'.",
            needs=f"each element of {quote(buffers)} belongs to one iteration of the loops from "
            f"'{top.node.var}' on, nothing else there uses it, and nothing there writes a buffer that the "
            "init reads",
            hint="Decompose at the outermost reduction loop.",
        )


def _may_leave(
    nest: BlockNest, loops: Sequence[str], *, buffers: Set[str], read_around: set[str]
) -> bool:
    """Return whether an init that writes some buffers is proved to be the same outside of loops."""
    cursor, top = nest.block, nest.top
    values = values_at(cursor) | {iterator.var: iterator.value for iterator in cursor.node.iters}
    # The body is included: it must not read an element that the init of a later iteration now writes first.
    parts = (*cursor.node.init, *cursor.node.body)
    accesses = list(access_forms(parts, buffers, values=values, function=cursor.function))
    varying = loops_within((top.node,))
    is_disjoint = all(
        disjointness(
            loop, _accesses_to(buffer, accesses), varying=varying, function=cursor.function
        )
        == "disjoint"
        for loop in loops
        for buffer in buffers
    )
    read = buffers_read_by_init(cursor) | read_around
    elsewhere = {name for other in stmts_beside(cursor, top) for name in buffers_used_by(other)}
    return (
        is_disjoint and read.isdisjoint(outer_writes((top.node,))) and elsewhere.isdisjoint(buffers)
    )


def _require_independent_inits(cursor: Cursor[Block], top: Cursor[For]) -> None:
    """Refuse an init that shares buffers with the init of an earlier block that runs before the same loop.

    The new block runs before the loop, and so before the inits that still run with it.
    """
    own_writes = outer_writes(cursor.node.init)
    for other in takewhile(lambda earlier: earlier.node is not cursor.node, blocks_with_init(top)):
        other_writes = outer_writes(other.node.init)
        shared = other_writes & (
            own_writes | buffers_read_by_init(cursor)
        ) | own_writes & buffers_read_by_init(other)
        if shared and top.node.var in reduction_loops(other.node, values_at(other)):
            raise schedule_error(
                "decompose_reduction.not_proved",
                f"Cannot prove that the init of block '{cursor.node.name}' may run before that of block "
                f"'{other.node.name}'.",
                needs=f"they use different elements of {quote(shared)}",
                hint=f"Apply decompose_reduction to block '{other.node.name}' first.",
            )


def _accesses_to(buffer_name: str, accesses: Sequence[AccessForm]) -> list[AccessForm]:
    return [access for access in accesses if access.buffer == buffer_name]


def _bounds_or_condition(part: LoopOrCondition) -> tuple[Expr, ...]:
    """Return the bounds of a loop, or a condition itself."""
    return (part.start, part.extent) if isinstance(part, For) else (part,)
