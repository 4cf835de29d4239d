"""Sums into elements that several iterations of a loop share, in parts that run on different threads.

Either each part adds up into elements of its own (*privatised*); or the parts follow the order in which
the loop visits the elements (*segmented*), so that only the first element of a part may be shared with
the parts before. What parts have of their own is combined after the loop, in their order: results do
not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.reductions import Reduction, identity
from gossamer_ir.arith.simplify import FALSE
from gossamer_ir.core.build import ZERO, conjoined, conjuncts, index, index_var, mul
from gossamer_ir.nodes import (
    Binary,
    Block,
    BlockIter,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    IfThenElse,
    Load,
    Module,
    Range,
    Stmt,
    Store,
)  # fmt: skip
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import free_vars, resolve, substitute, substitute_body
from gossamer_schedule.bounds.predicates import below
from gossamer_schedule.cursor.cursor import Cursor, name_of, replaced, statements
from gossamer_schedule.cursor.resolve import find_function, find_loop
from gossamer_schedule.dependence.access import values_at
from gossamer_schedule.primitives.loops.split import split
from gossamer_schedule.reductions.reassociation import reassociating
from gossamer_schedule.reductions.sums import Sum, require_segments, require_sum
from gossamer_schedule.staging.copies import copy_nest


class SplitReduction(msgspec.Struct, frozen=True):
    """A sum whose loop was split: the cursor at the loop over `count` parts."""

    cursor: Cursor
    sum: Sum
    count: int


def in_parts(cursor: Cursor, form: str, *, count: int) -> tuple[Module, tuple[str, ...]]:
    """The module in which the loop at a cursor runs in so many parts, in parallel, and the names of the
    loop over parts, of the one inside, and of the blocks that fill and combine what parts have."""
    loop, function = cursor.node, cursor.function
    whole = require_sum(cursor)
    dim = require_segments(whole) if form == "segmented" else 0
    cut = split(cursor.module, loop.var, factors=(count, None), function=function.name)
    root = find_function(cut.module, "parallel", function=function.name)
    outer, inner = (find_loop(root, loop=name) for name in cut.names)
    parts = SplitReduction(outer, require_sum(outer), count)
    if form == "privatised":
        made = privatised(parts)
    else:
        begin = mul(index_var(outer.node.var), inner.node.extent)
        first = substitute(whole.element[dim], {loop.var: begin})
        made = segmented(parts, dim, first=first, extent=loop.extent, begin=begin)
    before = set(map(name_of, statements(root.function.body)))
    blocks = (name_of(found) for found in statements(made.body) if isinstance(found, Block))
    added = (name for name in blocks if name not in before)
    return root.with_function(made).module, (*cut.names, *added)


def privatised(parts: SplitReduction) -> Function:
    """Each part adds up into a copy of the buffer, which starts at the reducer's identity; the copies
    are combined with the buffer afterwards."""
    found, namer = parts.sum, namer_of(parts.cursor.function)
    own = replace(
        found.buffer,
        name=namer.fresh(f"{found.buffer.name}_private"),
        shape=(index(parts.count), *found.buffer.shape),
        handle=None,
    )
    part = BlockIter(namer.fresh(f"v{parts.cursor.node.var}"), "S", _all(own, 0), _var(parts))
    at = (index_var(part.var), *found.reduction.store.indices)
    block = _into(found.block, found.reduction, own, at, name=found.block.name)
    block = replace(block, iters=(*block.iters, part))
    every = _dimensions(own)
    element = tuple(index_var(found.var) for found in every[1:])
    return _around(parts, own, (block,), element=element, every=(*every[1:], every[0]))


def segmented(
    parts: SplitReduction, dim: int, *, first: Expr, extent: Expr, begin: Expr
) -> Function:
    """Each part adds up directly, but for what concerns the element in dimension `dim` that it visits
    `first`, which parts before may share: that goes into one of its own, combined afterwards. `begin`
    is the iteration, below `extent`, that a part begins with; both are in terms of its number."""
    found, namer = parts.sum, namer_of(parts.cursor.function)
    shape = found.buffer.shape
    own = replace(
        found.buffer,
        name=namer.fresh(f"{found.buffer.name}_carry"),
        shape=(index(parts.count), *shape[:dim], *shape[dim + 1 :]),
        handle=None,
    )
    part = BlockIter(namer.fresh(f"v{parts.cursor.node.var}"), "S", _all(own, 0), _var(parts))
    in_part = {parts.cursor.node.var: index_var(part.var)}
    at = found.reduction.store.indices
    others = (*at[:dim], *at[dim + 1 :])
    direct = replace(found.block, iters=(*found.block.iters, part))
    kept = _under(parts, direct, Compare("ne", at[dim], substitute(first, in_part)))
    carried = _under(parts, direct, Compare("eq", at[dim], substitute(first, in_part)))
    carry = _into(
        carried, found.reduction, own, (index_var(part.var), *others), name=f"{direct.name}_carry"
    )
    fresh = {item.var: namer.fresh(f"{item.var}_carry") for item in carry.iters}
    carry = renamed(carry, fresh, namer.fresh(carry.name))
    every = _dimensions(own)
    number = {parts.cursor.node.var: index_var(every[0].var)}
    rest = [index_var(item.var) for item in every[1:]]
    element = (*rest[:dim], substitute(first, number), *rest[dim:])
    asked = (below(substitute(begin, number), extent),)
    return _around(parts, own, (kept, carry), element=element, every=every, conditions=asked)


def _around(
    parts: SplitReduction,
    own: Buffer,
    blocks: tuple[Block, ...],
    *,
    element: tuple[Expr, ...],
    every: Sequence[BlockIter],
    conditions: Iterable[Expr] = (),
) -> Function:
    """The function with what parts have of their own filled before and combined after the loop."""
    found, loop = parts.sum, parts.cursor.node
    buffer, op = found.buffer, found.reduction.op
    namer = namer_of(replace(parts.cursor.function, buffers=(*parts.cursor.function.buffers, own)))
    dimensions = _dimensions(own)
    mine = tuple(index_var(item.var) for item in dimensions)
    empty = Store(own.name, mine, identity(op, own.dtype))
    total = Binary(op, Load(buffer.name, element, buffer.dtype), Load(own.name, mine, own.dtype))
    fill = copy_nest(f"{found.block.name}_fill", dimensions, (empty,), namer=namer)
    combine = copy_nest(
        f"{found.block.name}_combine",
        every,
        (Store(buffer.name, element, total),),
        conditions=conditions,
        namer=namer,
    )
    body = reassociating(_instead(loop.body, blocks))
    run = replace(loop, kind="parallel", body=body)
    function = replaced(parts.cursor, (fill, run, combine))
    return replace(function, buffers=(*function.buffers, own))


def _var(parts: SplitReduction) -> Expr:
    return index_var(parts.cursor.node.var)


def _all(buffer: Buffer, dim: int) -> Range:
    return Range(ZERO, buffer.shape[dim])


def _dimensions(buffer: Buffer) -> tuple[BlockIter, ...]:
    """An iterator for each dimension."""
    names = ["vp", *(f"ve{dim}" for dim in range(1, len(buffer.shape)))]
    return tuple(
        BlockIter(name, "S", _all(buffer, dim), index_var(name)) for dim, name in enumerate(names)
    )


def _into(
    block: Block, reduction: Reduction, own: Buffer, at: tuple[Expr, ...], *, name: str
) -> Block:
    """The block, adding up in another buffer."""
    total = Binary(reduction.op, Load(own.name, at, own.dtype), reduction.value)
    return replace(block, name=name, body=(Store(own.name, at, total),), reads=None, writes=None)


def _under(parts: SplitReduction, block: Block, condition: Expr) -> Block:
    """The block under one more condition on its element, which is only asked where the others hold
    that are not about inner loops alone."""
    loop = parts.cursor.node
    values = values_at(parts.cursor) | {item.var: item.value for item in block.iters}
    split_loops = {loop.var, loop.body[0].var}
    inner = {found.var for found in statements(loop.body) if isinstance(found, For)} - split_loops
    before = tuple(conjuncts(block.predicate))
    free = [free_vars(resolve(part, values)) for part in before]
    asked = conjoined(
        part
        for part, names in zip(before, free, strict=True)
        if names & split_loops or not names & inner
    )
    guarded = condition if asked is None else IfThenElse(asked, condition, FALSE)
    return replace(block, predicate=conjoined((*before, guarded)))


def renamed(block: Block, names: dict[str, str], name: str) -> Block:
    """The block under another name, with other names of its iterators."""
    variables = {old: index_var(new) for old, new in names.items()}
    iters = tuple(
        replace(item, var=names[item.var], domain=substitute(item.domain, variables))
        for item in block.iters
    )
    predicate = None if block.predicate is None else substitute(block.predicate, variables)
    body = substitute_body(block.body, variables)
    return replace(block, name=name, iters=iters, body=body, predicate=predicate)


def _instead(body: tuple[Stmt, ...], blocks: tuple[Block, ...]) -> tuple[Stmt, ...]:
    """Loops around one block, with other blocks in its place."""
    (inner,) = body
    return (
        (replace(inner, body=_instead(inner.body, blocks)),) if isinstance(inner, For) else blocks
    )
