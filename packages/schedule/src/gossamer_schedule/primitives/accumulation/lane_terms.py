"""Sums into elements that lanes share: the terms are computed in lanes, and added one after another."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import dtype_of, index_var, sub
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    BlockIter,
    Buffer,
    For,
    Function,
    Load,
    Range,
    Store,
)
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import substitute
from gossamer_schedule.cursor.cursor import replaced
from gossamer_schedule.primitives.accumulation.partial_sums import renamed
from gossamer_schedule.reductions.sums import Sum


def terms_in_lanes(found: Sum) -> tuple[Function, tuple[str, ...]]:
    """The function in which the lanes of a loop compute the terms of a sum into a buffer of theirs, which
    a loop behind adds in their order; and the names of that loop, of the buffer and of its block."""
    loop: For = found.cursor.node
    block, reduction = found.block, found.reduction
    namer = namer_of(found.cursor.function)
    name = namer.fresh(f"{block.name}_terms")
    turn = namer.fresh(f"{loop.var}_turn")
    terms = Buffer(namer.fresh(name), (loop.extent,), dtype_of(reduction.value), scope="local")

    lane = BlockIter(namer.fresh(f"v{loop.var}"), "S", _range(loop), index_var(loop.var))
    at = (sub(index_var(lane.var), loop.start),)
    term = replace(
        block,
        iters=(*(replace(item, kind="S") for item in block.iters), lane),
        body=(Store(terms.name, at, reduction.value),),
        reads=None,
        writes=None,
    )
    fresh = {item.var: namer.fresh(f"{item.var}_term") for item in term.iters}
    in_lanes = replace(loop, kind="vectorized", body=(renamed(term, fresh, name),))

    total = Binary(reduction.op, _element(found), Load(terms.name, at, terms.dtype))
    adding = replace(
        block,
        iters=(*block.iters, lane),
        body=(replace(reduction.store, value=total),),
        reads=None,
        writes=None,
    )
    in_turn = replace(loop, var=turn, body=(substitute(adding, {loop.var: index_var(turn)}),))
    made = replaced(found.cursor, (Allocate(terms), in_lanes, in_turn))
    return made, (loop.var, turn, terms.name, name)


def _range(loop: For) -> Range:
    return Range(loop.start, loop.extent)


def _element(found: Sum) -> Load:
    store = found.reduction.store
    return Load(store.buffer, store.indices, found.buffer.dtype)
