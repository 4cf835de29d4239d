"""Removes enclosing blocks, as `blockize` creates them."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import iters_of_init
from gossamer_ir.core.build import index_var
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.nodes import Block
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_schedule.cursor.clones import is_clone
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.nests.block_nest import single_block, with_single_block_replaced
from gossamer_schedule.nests.init_nest import init_nest, required_init_nest
from gossamer_schedule.predicates.block_predicates import conjunction_with_inner


def without_outer_blocks(cursor: Cursor[Block]) -> Cursor[Block]:
    """Return the innermost of nested blocks, with the enclosing blocks that `blockize` creates removed.

    The block at the cursor itself is returned unless it consists of loops around one block.

    Raises `.dependence` if the init of an enclosing block depends on a reduction.
    """
    outer = cursor.node
    inner = single_block(outer.body)
    if inner is None:
        return cursor
    joined = inner
    if outer.init:
        with_init = _with_outer_init(cursor, outer, inner)
        if with_init is None:
            return cursor
        joined = with_init
    values = {iterator.var: iterator.value for iterator in outer.iters}
    # The element that the inner predicate loads may not exist where the outer one fails.
    predicate = conjunction_with_inner(outer.predicate, tuple(conjuncts(joined.predicate)))
    joined = replace(joined, predicate=predicate)
    changed = cursor.replace_with(
        substitute_body(with_single_block_replaced(outer.body, (joined,)), values)
    )
    return without_outer_blocks(find_block(changed, block=inner.name))


def _with_outer_init(cursor: Cursor[object], outer: Block, inner: Block) -> Block | None:
    """Return the inner block with the outer block's init, if `blockize` would produce it."""
    init_block = single_block(outer.init)
    iters = iters_of_init(inner)
    if inner.init or init_block is None or len(init_block.iters) != len(iters):
        return None
    values = {
        iterator.var: index_var(of.var)
        for iterator, of in zip(init_block.iters, iters, strict=True)
    }
    joined = replace(inner, init=substitute_body(init_block.body, values))
    alone = replace(outer, init=(), body=with_single_block_replaced(outer.body, (joined,)))
    without_init = find_block(cursor.replace_with((alone,)), block=inner.name)
    kept = required_init_nest(without_init, without_init.nest)
    expected, _ = init_nest(without_init, kept, namer=namer_of(without_init.function))
    return joined if is_clone(expected, outer.init) else None
