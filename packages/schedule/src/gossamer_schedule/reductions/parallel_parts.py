"""Reductions into elements that iterations of a loop share, split into parts that run on different threads.

In the form "privatized", each part accumulates into a copy of the buffer. In the form "segmented", the loop
visits elements in order, so a part shares only its first element with the parts before it: terms of that
element are accumulated in a separate element, the carry, and all others directly. Copies and carries are
combined after the loop, in the order of the parts, so results do not depend on the number of threads.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import Reduction, identity
from gossamer_ir.core.build import ZERO, index, index_var, mul
from gossamer_ir.core.conditions import conjunction, conjuncts, short_circuit_and
from gossamer_ir.nodes import (
    Binary,
    Block,
    BlockIter,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    Load,
    Range,
    Store,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.substitute import resolve, substitute, substitute_body
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts, function_with_replaced
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.nests.block_nest import with_single_block_replaced
from gossamer_schedule.nests.copy_nest import IterationDomain, copy_nest
from gossamer_schedule.predicates.block_predicates import less_than
from gossamer_schedule.reductions.loop_reduction import LoopReduction, required_loop_reduction
from gossamer_schedule.reductions.reassociation import with_reassociation_marks


class SplitReduction(msgspec.Struct, frozen=True):
    """A reduction whose loop was split: the cursor is at the loop over `count` parts."""

    cursor: Cursor[For]
    sum: LoopReduction
    count: int

    @property
    def var(self) -> str:
        """The number of the part: the variable of the loop over the parts."""
        name: str = self.cursor.node.var
        return name

    def partial_buffer(self, name: str, shape: tuple[Expr, ...]) -> Buffer:
        """Return a buffer with one partial result of some shape for each part."""
        buffer = self.sum.buffer
        return replace(buffer, name=name, shape=(index(self.count), *shape), handle=None)

    def iterator(self, namer: Namer) -> BlockIter:
        """Return an iterator over the parts."""
        domain = Range(ZERO, index(self.count))
        return BlockIter(namer.fresh(f"v{self.var}"), "S", domain, index_var(self.var))


def with_parallel_parts(
    whole: LoopReduction, outer: Cursor[For], *, dimension: int | None, count: int
) -> Function:
    """Return the function in which the parts of a reduction run in parallel.

    `outer` is the cursor at the loop over the `count` parts, into which the loop of `whole` was split. In
    the form "segmented", `dimension` is the dimension whose index changes with the loop.
    """
    parts = SplitReduction(outer, required_loop_reduction(outer), count)
    if dimension is None:
        return with_private_copies(parts)
    inner, loop = outer.node.body[0], whole.cursor.node
    assert isinstance(inner, For)
    begin = mul(index_var(parts.var), inner.extent)
    first = substitute(whole.element[dimension], {loop.var: begin})
    return with_carries(parts, dimension, first=first, extent=loop.extent, begin=begin)


def with_private_copies(parts: SplitReduction) -> Function:
    """Return the function in which each part accumulates into a copy of the buffer.

    The copies start at the identity of the reducer, and are combined with the buffer after the loop.
    """
    accumulation, namer = parts.sum, namer_of(parts.cursor.function)
    buffer = accumulation.buffer
    partial = parts.partial_buffer(namer.fresh(f"{buffer.name}_private"), buffer.shape)
    part = parts.iterator(namer)
    at = (index_var(part.var), *accumulation.reduction.store.indices)
    block = _accumulating_into(
        partial, at, accumulation.block, accumulation.reduction, name=accumulation.block.name
    )
    block = replace(block, iters=(*block.iters, part))
    number, *others = _iters_over(partial)
    element = tuple(index_var(iterator.var) for iterator in others)
    # The loop over the parts is the innermost one, so the copies of one element are combined together.
    points = IterationDomain((*others, number))
    return _with_partial_results(parts, partial, (block,), element=element, points=points)


def with_carries(
    parts: SplitReduction, dimension: int, *, first: Expr, extent: Expr, begin: Expr
) -> Function:
    """Return the function in which each part accumulates directly, except into the element it visits first.

    Earlier parts may share that element, whose index in `dimension` is `first`. Its terms go into the carry
    of the part, which is combined after the loop. `begin` is the first iteration of a part. Both are
    expressed by the number of the part; a part that begins at `extent` or later is empty.
    """
    accumulation, namer = parts.sum, namer_of(parts.cursor.function)
    buffer = accumulation.buffer
    shape = (*buffer.shape[:dimension], *buffer.shape[dimension + 1 :])
    partial = parts.partial_buffer(namer.fresh(f"{buffer.name}_carry"), shape)
    part = parts.iterator(namer)
    in_part = {parts.var: index_var(part.var)}
    at = accumulation.reduction.store.indices
    others = (*at[:dimension], *at[dimension + 1 :])
    direct = replace(accumulation.block, iters=(*accumulation.block.iters, part))
    remaining = _with_condition(
        parts, direct, Compare("ne", at[dimension], substitute(first, in_part))
    )
    carried = _with_condition(
        parts, direct, Compare("eq", at[dimension], substitute(first, in_part))
    )
    indices = (index_var(part.var), *others)
    name = f"{direct.name}_carry"
    carry = _accumulating_into(partial, indices, carried, accumulation.reduction, name=name)
    fresh = {iterator.var: namer.fresh(f"{iterator.var}_carry") for iterator in carry.iters}
    carry = renamed_block(carry, fresh, namer.fresh(carry.name))
    iters = _iters_over(partial)
    number = {parts.var: index_var(iters[0].var)}
    rest = [index_var(iterator.var) for iterator in iters[1:]]
    element = (*rest[:dimension], substitute(first, number), *rest[dimension:])
    points = IterationDomain(
        iters, (less_than(substitute(begin, number), extent),)
    )  # only parts with iterations
    return _with_partial_results(parts, partial, (remaining, carry), element=element, points=points)


def _with_partial_results(
    parts: SplitReduction,
    partial: Buffer,
    blocks: tuple[Block, ...],
    *,
    element: tuple[Expr, ...],
    points: IterationDomain,
) -> Function:
    """Return the function that fills the `partial` results before the loop and combines them after it.

    `blocks` replace the block in the loop. The combination visits `points`, and updates `element` of the
    buffer.
    """
    accumulation, loop = parts.sum, parts.cursor.node
    buffer, op = accumulation.buffer, accumulation.reduction.op
    namer = namer_of(
        replace(parts.cursor.function, buffers=(*parts.cursor.function.buffers, partial))
    )
    dimensions = _iters_over(partial)
    indices = tuple(index_var(iterator.var) for iterator in dimensions)
    start = Store(partial.name, indices, identity(op, partial.dtype))
    total = Binary(
        op, Load(buffer.name, element, buffer.dtype), Load(partial.name, indices, partial.dtype)
    )
    fill = copy_nest(
        f"{accumulation.block.name}_fill", IterationDomain(dimensions), (start,), namer=namer
    )
    combine = copy_nest(
        f"{accumulation.block.name}_combine",
        points,
        (Store(buffer.name, element, total),),
        namer=namer,
    )
    body = with_reassociation_marks(with_single_block_replaced(loop.body, blocks))
    run = replace(loop, kind="parallel", body=body)
    function = function_with_replaced(parts.cursor, (fill, run, combine))
    return replace(function, buffers=(*function.buffers, partial))


def _iters_over(buffer: Buffer) -> tuple[BlockIter, ...]:
    """Return an iterator for each dimension, the first of which is the number of the part."""
    names = ["vp", *(f"ve{dimension}" for dimension in range(1, len(buffer.shape)))]
    return tuple(
        BlockIter(name, "S", Range(ZERO, extent), index_var(name))
        for name, extent in zip(names, buffer.shape, strict=True)
    )


def _accumulating_into(
    partial: Buffer, at: tuple[Expr, ...], block: Block, reduction: Reduction, *, name: str
) -> Block:
    """Return the block, accumulating into an element of another buffer."""
    total = Binary(reduction.op, Load(partial.name, at, partial.dtype), reduction.value)
    return replace(
        block, name=name, body=(Store(partial.name, at, total),), reads=None, writes=None
    )


def _with_condition(parts: SplitReduction, block: Block, condition: Expr) -> Block:
    """Return the block under one more condition on its element.

    The new condition is evaluated only where the others hold, except those on inner loops alone.
    """
    loop = parts.cursor.node
    values = values_at(parts.cursor) | {iterator.var: iterator.value for iterator in block.iters}
    part = loop.body[0]
    assert isinstance(part, For)
    split_loops = {loop.var, part.var}
    inner = {
        node.var for node in addressable_stmts(loop.body) if isinstance(node, For)
    } - split_loops
    predicates = tuple(conjuncts(block.predicate))
    free = [free_vars(resolve(predicate, values)) for predicate in predicates]
    others = conjunction(
        *(
            part
            for part, names in zip(predicates, free, strict=True)
            if names & split_loops or not names & inner
        )
    )
    # The index of the element may read out of bounds where the other conditions fail.
    checked = short_circuit_and(others, condition)
    return replace(block, predicate=conjunction(*predicates, checked))


def renamed_block(block: Block, names: dict[str, str], name: str) -> Block:
    """Return the block under another name, with its iterators renamed."""
    vars = {old: index_var(new) for old, new in names.items()}
    iters = tuple(
        replace(iterator, var=names[iterator.var], domain=substitute(iterator.domain, vars))
        for iterator in block.iters
    )
    predicate = None if block.predicate is None else substitute(block.predicate, vars)
    body = substitute_body(block.body, vars)
    return replace(block, name=name, iters=iters, body=body, predicate=predicate)
