"""Puts a loop into a block of its own, with an iterator for each loop around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops, spatial_loops
from gossamer_ir.core.build import index_var
from gossamer_ir.nodes import Block, BlockIter, For, Range, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.loop_invariance import require_unchanged_bounds
from gossamer_schedule.made_names import outer_block_name
from gossamer_schedule.nests.block_nest import single_block
from gossamer_schedule.nests.init_checks import (
    loops_outside_reductions,
    reinitializing_loops,
    require_points_kept,
    require_same_effect,
)
from gossamer_schedule.nests.init_nest import init_nest, required_init_nest

IteratorKind: TypeAlias = Literal["S", "R"]


class Blockized(msgspec.Struct, frozen=True):
    """An outer block around a loop, and the names of the block and the loops of its init."""

    outer: Block
    init_names: tuple[str, ...]


def required_single_block(top: Cursor[For]) -> Cursor[Block]:
    """Return the cursor at the only block in a loop, if all else are loops around it; raises `.body`."""
    block = single_block(top.node.body)
    if block is None:
        raise schedule_error(
            f"{top.primitive}.body",
            f"Loop '{top.node.var}' contains more than loops around one block.",
            place=top.place,
        )
    return find_block(top.top, block=block.name)


def outer_block(
    cursor: Cursor[Block],
    top: Cursor[For],
    *,
    namer: Namer,
    instead: Callable[[For], tuple[Stmt, ...]] | None = None,
) -> Blockized:
    """Return a block `<block>_o` around the loop at `top`, or around what replaces it (`instead`).

    The loop contains the block at `cursor` and nothing else. Its init moves to the outer block if the loop
    is replaced, or if the init runs before a loop around `top`.

    Raises `.mixed`, `.dependence` and `.not_proved`.
    """
    block = cursor.node
    around = _loops_around(cursor, top)
    require_unchanged_bounds([loop for loop, _ in around], cursor=top)
    init: tuple[Stmt, ...] = ()
    init_names: tuple[str, ...] = ()
    if block.init and (instead is not None or _runs_before(cursor, around)):
        init, init_names = _moved_init(cursor, top, around, namer=namer)
        block = replace(block, init=())

    fresh = {loop.var: index_var(namer.fresh(f"v{loop.var}")) for loop, _ in around}
    iters = tuple(
        BlockIter(
            fresh[loop.var].name,
            kind,
            substitute(Range(loop.start, loop.extent), fresh),
            index_var(loop.var),
        )
        for loop, kind in around
    )
    nest: For = rewrite(top.node, lambda node: block if node == cursor.node else None)
    inside = (nest,) if instead is None else instead(nest)
    body, init = substitute_body(inside, fresh), substitute_body(init, fresh)
    return Blockized(
        Block(namer.fresh(outer_block_name(block.name)), iters, body, init=init), init_names
    )


def _moved_init(
    cursor: Cursor[Block],
    top: Cursor[For],
    around: Sequence[tuple[For, IteratorKind]],
    *,
    namer: Namer,
) -> tuple[tuple[Stmt, ...], tuple[str, ...]]:
    """Return the init of the block as a nest for the outer block, and the new names; refuse it unless its
    effect stays the same."""
    require_points_kept(cursor, {loop.var for loop, _ in around})
    if not any(kind == "R" for _, kind in around):  # else it runs before the loop already
        inner = cursor.loops_in_block[len(top.loops_in_block) :]
        crossed = loops_outside_reductions(inner, reduction_loops(cursor.node, values_at(cursor)))
        require_same_effect(cursor, top, crossed)
    kept = required_init_nest(cursor, cursor.nest[len(top.nest) :])
    init, names = init_nest(cursor, kept, namer=namer)
    _require_init(cursor, init, around)
    return init, names


def _runs_before(cursor: Cursor[Block], around: Sequence[tuple[For, IteratorKind]]) -> bool:
    """Return whether the init runs before one of the loops around.

    It does if the loop feeds the reduction, or if its iterations may share an element.
    """
    if any(kind == "R" for _, kind in around):
        return True
    return bool(reinitializing_loops(cursor, {loop.var for loop, _ in around}))


def _require_init(
    cursor: Cursor[Block], init: tuple[Stmt, ...], around: Sequence[tuple[For, IteratorKind]]
) -> None:
    """Refuse an init whose elements depend on a reduction loop: the outer block runs it before that loop."""
    for loop, kind in around:
        if kind == "R" and loop.var in free_vars(*init):
            raise schedule_error(
                f"{cursor.primitive}.dependence",
                f"The elements that the init of block '{cursor.node.name}' initializes depend on loop "
                f"'{loop.var}' of its reduction.",
            )


def _loops_around(cursor: Cursor[Block], top: Cursor[For]) -> list[tuple[For, IteratorKind]]:
    """Return the loops around `top` that its nest depends on, each with the kind of iterator it feeds."""
    values = values_at(cursor)
    reducing, selecting = reduction_loops(cursor.node, values), spatial_loops(cursor.node, values)
    needed = free_vars(top.node)
    around: list[tuple[For, IteratorKind]] = []
    for loop in reversed(top.loops_in_block):
        if loop.var in reducing & selecting:
            raise schedule_error(
                f"{cursor.primitive}.mixed",
                f"Loop '{loop.var}' feeds a spatial and a reduction iterator of block "
                f"'{cursor.node.name}'.",
                place=top.place,
            )
        if loop.var in needed:
            needed |= free_vars(loop.start) | free_vars(loop.extent)
            around.insert(0, (loop, "R" if loop.var in reducing else "S"))
    return around
