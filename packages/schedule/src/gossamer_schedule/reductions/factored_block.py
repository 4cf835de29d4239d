"""The first stage of `rfactor`: a block that reduces into one partial result per iteration of a loop."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.nodes import (
    AnyBuffer,
    Block,
    BlockIter,
    Buffer,
    DenseFixed,
    Expr,
    For,
    Function,
    IfThenElse,
    Range,
    Var,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import resolve, substitute, substitute_subexprs
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.made_names import partial_name
from gossamer_schedule.nests.block_nest import reduction_nest
from gossamer_schedule.reductions.term_reduction import TermReduction


class PartialBuffers(msgspec.Struct, frozen=True):
    """Partial results, one for each iteration of a loop: buffers with one more dimension at `axis`."""

    loop: For
    axis: int
    buffers: tuple[AnyBuffer, ...]
    axes: tuple[DenseFixed, ...]

    def element(self, at: tuple[Expr, ...], part: str) -> tuple[Expr, ...]:
        """Return the indices of an element in the partial result of iteration `part`."""
        return (*at[: self.axis], index_var(part), *at[self.axis :])

    def add_buffers(self, function: Function) -> Function:
        """Return the function with the buffers of partial results added."""
        buffers, axes = (*function.buffers, *self.buffers), (*function.axes, *self.axes)
        return replace(function, buffers=buffers, axes=axes)


def partial_buffers(
    loop: For, olds: Sequence[AnyBuffer], *, axis: int, namer: Namer
) -> PartialBuffers:
    """Return a buffer of partial results for each of `olds`, with one partial result per iteration."""
    buffers: list[AnyBuffer] = []
    new = DenseFixed(namer.fresh(partial_name(loop.var)), loop.extent)
    for old in olds:
        name = namer.fresh(partial_name(old.name))
        if isinstance(old, Buffer):
            shape = (*old.shape[:axis], loop.extent, *old.shape[axis:])
            buffers.append(replace(old, name=name, shape=shape, handle=None))
        else:
            axes = (*old.axes[:axis], new.name, *old.axes[axis:])
            buffers.append(replace(old, name=name, axes=axes, handle=None))
    # Only sparse buffers have axes; a dense one takes the extent itself.
    is_needed = any(not isinstance(old, Buffer) for old in olds)
    return PartialBuffers(loop, axis, tuple(buffers), (new,) if is_needed else ())


def fed_iters(block: Block, loop_name: str) -> tuple[BlockIter, ...]:
    """Return the iterators whose value depends on a loop."""
    return tuple(iterator for iterator in block.iters if loop_name in free_vars(iterator.value))


def preceding_iters(block: Block, loop_name: str) -> dict[str, Var]:
    """Return the spatial iterators before the first one that the loop feeds, by the loop that each is
    bound to.

    Such a loop may determine the extent of the reduction, as the loop over ragged rows does.
    """
    # Domains may use earlier iterators only, so the new ones stand where the first replaced one stood.
    first = min(block.iters.index(iterator) for iterator in fed_iters(block, loop_name))
    return {
        iterator.value.name: index_var(iterator.var)
        for iterator in block.iters[:first]
        if iterator.kind == "S" and isinstance(iterator.value, Var)
    }


def factored_block(
    cursor: Cursor[Block], reduction: TermReduction, parts: PartialBuffers, *, namer: Namer
) -> tuple[Block, str]:
    """Return the block that reduces into the partial result of the loop's iteration, and the iterator that
    selects the partial result.

    Each iterator that the loop feeds is replaced by one iterator for each loop that feeds it.
    """
    block = cursor.node
    change = _iterator_change(cursor, parts.loop, namer=namer)
    part = change.vars[parts.loop.var].name
    iters = _new_iters(block, change, part=part)
    per_part, conditions = _split_conditions(cursor, change, iters, loop_name=parts.loop.var)

    elements = [
        replace(term, buffer=new.name, indices=parts.element(term.indices, part))
        for term, new in zip(reduction.terms, parts.buffers, strict=True)
    ]
    filled, terms = [], []
    for element, identity in zip(elements, reduction.identities, strict=True):
        value = substitute(element.value, change.replaced_iters)
        filled.append(replace(element, value=identity))
        terms.append(replace(element, value=_select(per_part, value, identity)))
    reducing_block = Block(
        namer.fresh(partial_name(block.name)),
        iters,
        (reduction.stmt(terms),),
        init=tuple(filled),
        predicate=conjunction(*conditions),
        annotations=block.annotations,
    )
    return reducing_block, part


class _IteratorChange(msgspec.Struct, frozen=True):
    """The iterators `fed` by a loop, and the variables of those that replace them.

    Each of the `loops` that feed them gets an iterator. Loops in `selected` have one already.
    """

    fed: tuple[BlockIter, ...]
    loops: tuple[For, ...]
    vars: dict[str, Var]
    selected: dict[str, Var]

    @property
    def replaced_iters(self) -> dict[str, Expr]:
        """The values of the replaced iterators in terms of the new ones and of those that stay."""
        vars = self.selected | self.vars
        return {iterator.var: substitute(iterator.value, vars) for iterator in self.fed}


def _iterator_change(cursor: Cursor[Block], loop: For, *, namer: Namer) -> _IteratorChange:
    """Return the change of the iterators that a loop feeds.

    An iterator that is bound to one loop keeps its name.
    """
    fed = fed_iters(cursor.node, loop.var)
    selected = preceding_iters(cursor.node, loop.var)
    feeding = {name for iterator in fed for name in free_vars(iterator.value)} - selected.keys()
    loops = tuple(other for other in reduction_nest(cursor).loops if other.var in feeding)
    # A name that schedules already use survives if it means the same.
    kept = {iterator.value: iterator.var for iterator in fed}
    names = {
        other.var: kept.get(index_var(other.var)) or namer.fresh(f"v{other.var}") for other in loops
    }
    vars = {old: index_var(new) for old, new in names.items()}
    return _IteratorChange(fed, loops, vars, selected)


def _new_iters(block: Block, change: _IteratorChange, *, part: str) -> tuple[BlockIter, ...]:
    """Return the iterators of the new block; `part` is spatial, the other new ones are reductions."""
    first = block.iters.index(change.fed[0])
    before, after = block.iters[:first], block.iters[first:]
    replacements: dict[Expr, Expr] = {
        iterator.value: index_var(iterator.var) for iterator in before if free_vars(iterator.value)
    }
    replacements |= {index_var(old): new for old, new in change.vars.items()}
    added = [
        BlockIter(
            change.vars[loop.var].name,
            "S" if change.vars[loop.var].name == part else "R",
            Range(
                substitute_subexprs(loop.start, replacements),
                substitute_subexprs(loop.extent, replacements),
            ),
            index_var(loop.var),
        )
        for loop in change.loops
    ]
    rest = [
        replace(iterator, domain=substitute(iterator.domain, change.replaced_iters))
        for iterator in after
        if iterator not in change.fed
    ]
    return (*before, *added, *rest)


def _split_conditions(
    cursor: Cursor[Block], change: _IteratorChange, iters: tuple[BlockIter, ...], *, loop_name: str
) -> tuple[list[Expr], list[Expr]]:
    """Return the conditions that depend on the loop but not on the remaining reduction, and the others.

    The former must not be in the predicate: partial results for which they are false would not be
    initialized. They select the identity as the value instead.
    """
    values = values_at(cursor)
    values_in_block = values | {iterator.var: iterator.value for iterator in cursor.node.iters}
    reducing = reduction_loops(replace(cursor.node, iters=iters), values)
    per_part: list[Expr] = []
    others: list[Expr] = []
    for condition in conjuncts(cursor.node.predicate):
        used = free_vars(resolve(condition, values_in_block))
        is_of_part = loop_name in used and used.isdisjoint(reducing)
        (per_part if is_of_part else others).append(substitute(condition, change.replaced_iters))
    return per_part, others


def _select(conditions: Sequence[Expr], value: Expr, other: Expr) -> Expr:
    condition = conjunction(*conditions)
    return value if condition is None else IfThenElse(condition, value, other)


def part_iterator(parts: PartialBuffers, name: str) -> BlockIter:
    """Return the reduction iterator over the partial results."""
    return BlockIter(name, "R", Range(ZERO, parts.loop.extent), index_var(parts.loop.var))
