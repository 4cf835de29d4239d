"""The init of a block as a nest of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import (
    LoopOrCondition,
    conditions_of_init,
    iters_of_init,
    vars_outside_init,
    without_loops,
)
from gossamer_ir.core.build import index_var
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.nodes import Block, Expr, For, If, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.made_names import INIT_SUFFIX, init_name
from gossamer_schedule.nests.block_nest import BlockNest, enclosing_loops_and_conditions


def required_init_nest(
    cursor: Cursor[Block], parts: Sequence[LoopOrCondition]
) -> tuple[LoopOrCondition, ...]:
    """Return the loops and conditions around a block in which its init runs.

    Raises `.dependence`.
    """
    nest, dropped = BlockNest(cursor, tuple(parts)), vars_outside_init(enclosed_block(cursor))
    loops = (loop for loop in nest.loops if loop.var not in dropped)
    used = {name for loop in loops for name in free_vars(loop.start) | free_vars(loop.extent)}
    used |= free_vars(
        *cursor.node.init, *(iterator.domain for iterator in iters_of_init(cursor.node))
    )
    if used & dropped or nest.has_let:
        raise schedule_error(
            f"{cursor.primitive}.dependence",
            f"The init of block '{cursor.node.name}' or its loops depend on "
            f"{', '.join(sorted(used & dropped)) or 'a let'}, which a block of its own cannot use.",
        )
    return tuple(without_loops(parts, dropped))


def init_nest(
    cursor: Cursor[Block],
    kept: Sequence[LoopOrCondition],
    *,
    namer: Namer,
    suffix: str = INIT_SUFFIX,
) -> tuple[tuple[Stmt, ...], tuple[str, ...]]:
    """Return a nest for the init of a block: block `<block>_init` in loops `<loop>_init` and conditions like
    those of `kept`; and the names of the block and the loops."""
    loops = (part for part in kept if isinstance(part, For))
    names = {loop.var: namer.fresh(init_name(loop.var, suffix=suffix)) for loop in loops}
    block = _init_block(cursor, names, namer=namer, suffix=suffix)
    return _nest_around(kept, names, (block,)), (block.name, *names.values())


def conditions_around(cursor: Cursor[Block]) -> tuple[Expr, ...]:
    """Return the conjuncts of the conditions around a block, up to the outer block, and of its predicate."""
    return (
        *BlockNest(cursor, enclosing_loops_and_conditions(cursor)).conditions,
        *conjuncts(cursor.node.predicate),
    )


def _init_block(
    cursor: Cursor[Block], names: Mapping[str, str], *, namer: Namer, suffix: str
) -> Block:
    block = cursor.node
    spatial = [replace(iterator, kind="S") for iterator in iters_of_init(block)]
    renamed: dict[str, Expr] = {old: index_var(new) for old, new in names.items()}
    fresh = {
        iterator.var: namer.fresh(init_name(iterator.var, suffix=suffix)) for iterator in spatial
    }
    renamed |= {old: index_var(new) for old, new in fresh.items()}
    iters = tuple(
        replace(substitute(iterator, renamed), var=fresh[iterator.var]) for iterator in spatial
    )
    predicate = conjunction(*conditions_of_init(enclosed_block(cursor)))
    return Block(
        namer.fresh(init_name(block.name, suffix=suffix)),
        iters,
        substitute_body(block.init, renamed),
        predicate=None if predicate is None else substitute(predicate, renamed),
    )


def _nest_around(
    kept: Sequence[LoopOrCondition], names: Mapping[str, str], body: tuple[Stmt, ...]
) -> tuple[Stmt, ...]:
    renamed: dict[str, Expr] = {old: index_var(new) for old, new in names.items()}
    for loop in reversed(kept):
        if not isinstance(loop, For):
            body = (If(substitute(loop, renamed), body),)
            continue
        start, extent = substitute(loop.start, renamed), substitute(loop.extent, renamed)
        copy = For(names[loop.var], start, extent, body)
        if loop.kind != "parallel":
            copy = replace(copy, kind=loop.kind, thread=loop.thread)
        body = (copy,)
    return body
