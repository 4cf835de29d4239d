"""`lift_loop`: move a loop out of the block that contains it."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.nodes import Block, BlockIter, For, Function, IfThenElse, Range
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.loop_invariance import require_unchanged, require_unchanged_bounds
from gossamer_schedule.nests.init_checks import reinitializing_loops


@primitive(stages=LOOP_STAGES)
def lift_loop(root: Cursor[Function], loop: str, *, function: str | None = None) -> Change:
    """Move a serial loop out of the block of which it is the whole body.

    The block gets a spatial iterator `v<loop>` for the loop. The result's name is that of the loop.

    Raises `ScheduleError` with a code `schedule.lift_loop.*`:

    * `.not_alone`: the loop is not the whole body of a block
    * `.init`: the block has an init, or a block inside has one that runs before the loop
    * `.not_proved`: the loop may change its bounds, or what the block's predicate or iterators read

    >>> from gossamer_testkit.examples import NESTED
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(NESTED))
    for i in T.serial(m):
        with T.block("rows"):
            vi = T.axis.spatial(m, i)
            for j in T.serial(n):
                with T.block("scale"):
                    ui = T.axis.spatial(m, vi)
                    uj = T.axis.spatial(n, j)
                    Y[ui, uj] = X[ui, uj] * 2.0
    >>> print(body_text(lift_loop(NESTED, "j").module))
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("rows"):
                vi, vj = T.axis.remap("SS", [i, j])
                with T.block("scale"):
                    ui = T.axis.spatial(m, vi)
                    uj = T.axis.spatial(n, vj)
                    Y[ui, uj] = X[ui, uj] * 2.0
    """
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    block = _required_block(cursor)
    _require_unchanged_block(cursor, block)
    _require_no_reduction(cursor, block)

    iterator = namer_of(root.function).fresh(f"v{loop}")
    lifted = _loop_around_block(cursor.node, block, iterator)

    return Change(cursor.up(1).replace_with((lifted,)), (loop,))


def _required_block(cursor: Cursor[For]) -> Block:
    """Return the block around the loop; refuse other statements or an init in it.

    Outside of the block, the loop would repeat them in each iteration. An init would then overwrite what
    earlier iterations have accumulated.
    """
    block = cursor.parents[-1]
    if not isinstance(block, Block) or block.body != (cursor.node,):
        raise schedule_error(
            "lift_loop.not_alone",
            f"Loop '{cursor.node.var}' is not the whole body of a block.",
            place=cursor.place,
        )
    if block.init:
        raise schedule_error(
            "lift_loop.init",
            f"Block '{block.name}' has an init, which must run before loop '{cursor.node.var}'.",
            hint="Apply decompose_reduction before.",
            place=cursor.up(1).place,
        )
    return block


def _require_unchanged_block(cursor: Cursor[For], block: Block) -> None:
    """Refuse a loop that may change its bounds, or the predicate and iterator values of the block.

    After the move they are evaluated in each iteration of the loop.
    """
    require_unchanged_bounds((cursor.node,), cursor=cursor)
    predicate = () if block.predicate is None else (block.predicate,)
    values = (iterator.value for iterator in block.iters)
    what = "the predicate or an iterator of the block"
    require_unchanged(cursor.node, (*predicate, *values), cursor=cursor, what=what)


def _require_no_reduction(cursor: Cursor[For], block: Block) -> None:
    """Refuse a loop before which the init of a block inside runs: in the block around, that init would run
    in each iteration of the loop, or in none."""
    for below in cursor.below():
        if not isinstance(below.node, Block) or not below.node.init or _is_in_block(below, cursor):
            continue
        loop, role = cursor.node.var, None
        if loop in reduction_loops(below.node, values_at(below)):
            role = "is a reduction loop of"
        elif reinitializing_loops(below, {loop}):
            role = "may visit an element several times in"
        if role is not None:
            raise schedule_error(
                "lift_loop.init",
                f"Loop '{loop}' {role} block '{below.node.name}', whose init must run before the loop, in "
                f"block '{block.name}'.",
                hint="Apply decompose_reduction before.",
                place=cursor.place,
            )


def _is_in_block(cursor: Cursor[object], top: Cursor[object]) -> bool:
    """Return whether a block stands between the loop at `top` and a statement in it."""
    return any(isinstance(step.parent, Block) for step in cursor.steps_from(top))


def _loop_around_block(loop: For, block: Block, iterator_name: str) -> For:
    """Return the loop around the block, with the block's iterators in its bounds replaced by their values."""
    values = {iterator.var: iterator.value for iterator in block.iters}
    start, extent = substitute(loop.start, values), substitute(loop.extent, values)
    if block.predicate is not None and (free_vars(loop.extent) or buffers_accessed(extent, start)):
        # Bounds were evaluated only where the predicate holds; elsewhere they may be undefined.
        predicate = substitute(block.predicate, values)
        start, extent = (IfThenElse(predicate, bound, ZERO) for bound in (start, extent))
    domain = Range(loop.start, loop.extent)
    added = BlockIter(iterator_name, "S", domain, index_var(loop.var))
    body = substitute_body(loop.body, {loop.var: index_var(iterator_name)})
    moved = replace(block, iters=(*block.iters, added), body=body)
    return replace(loop, start=start, extent=extent, body=(moved,))
