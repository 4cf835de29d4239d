"""Reductions into elements that lanes share: lanes compute the terms, a serial loop combines them."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import index_var, sub
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Allocate, Binary, BlockIter, Buffer, For, Function, Load, Range, Store
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import substitute
from gossamer_schedule.cursor.cursor_at import function_with_replaced
from gossamer_schedule.reductions.loop_reduction import LoopReduction
from gossamer_schedule.reductions.parallel_parts import renamed_block


def terms_in_lanes(accumulation: LoopReduction) -> tuple[Function, tuple[str, ...]]:
    """Return the function in which lanes store the terms of a reduction to a buffer, and the new names.

    A serial loop combines the terms. It follows the vectorized one and keeps the order of the terms, so
    results do not change. The names are those of the two loops, of the buffer, and of the block that fills
    it.
    """
    loop = accumulation.cursor.node
    block, reduction = accumulation.block, accumulation.reduction
    namer = namer_of(accumulation.cursor.function)
    name = namer.fresh(f"{block.name}_terms")
    serial = namer.fresh(f"{loop.var}_turn")
    terms = Buffer(namer.fresh(name), (loop.extent,), dtype_of(reduction.value), scope="local")

    lane = BlockIter(namer.fresh(f"v{loop.var}"), "S", _loop_range(loop), index_var(loop.var))
    at = (sub(index_var(lane.var), loop.start),)
    term = replace(
        block,
        iters=(*(replace(iterator, kind="S") for iterator in block.iters), lane),
        body=(Store(terms.name, at, reduction.value),),
        reads=None,
        writes=None,
    )
    fresh = {iterator.var: namer.fresh(f"{iterator.var}_term") for iterator in term.iters}
    in_lanes = replace(loop, kind="vectorized", body=(renamed_block(term, fresh, name),))

    total = Binary(reduction.op, _element_load(accumulation), Load(terms.name, at, terms.dtype))
    combining = replace(
        block,
        iters=(*block.iters, lane),
        body=(replace(reduction.store, value=total),),
        reads=None,
        writes=None,
    )
    in_order = replace(
        loop, var=serial, body=(substitute(combining, {loop.var: index_var(serial)}),)
    )
    changed = function_with_replaced(accumulation.cursor, (Allocate(terms), in_lanes, in_order))
    return changed, (loop.var, serial, terms.name, name)


def _loop_range(loop: For) -> Range:
    return Range(loop.start, loop.extent)


def _element_load(accumulation: LoopReduction) -> Load:
    store = accumulation.reduction.store
    return Load(store.buffer, store.indices, accumulation.buffer.dtype)
