"""A reduction in which the iterations of one loop have parts of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.build import ZERO, conjoined, conjuncts, index_var
from gossamer_ir.names import Namer
from gossamer_ir.nodes import (
    AnyBuffer,
    Block,
    BlockIter,
    Buffer,
    Const,
    DenseFixed,
    Expr,
    For,
    Function,
    IfThenElse,
    Range,
    Store,
)
from gossamer_ir.touches import reduction_loops
from gossamer_ir.walk import free_vars, resolve, substitute
from gossamer_schedule.accesses import values_at
from gossamer_schedule.combining import Combining
from gossamer_schedule.consumed import with_parts
from gossamer_schedule.sites import Site


class Parts(msgspec.Struct, frozen=True):
    """The parts of the iterations of a loop: buffers with one more dimension at `axis`."""

    loop: For
    axis: int
    buffers: tuple[AnyBuffer, ...]
    axes: tuple[DenseFixed, ...]

    def element(self, at: tuple[Expr, ...], part: str) -> tuple[Expr, ...]:
        """The indices of an element of one part."""
        return (*at[: self.axis], index_var(part), *at[self.axis :])

    def added(self, function: Function) -> Function:
        """The function with the buffers."""
        buffers, axes = (*function.buffers, *self.buffers), (*function.axes, *self.axes)
        return replace(function, buffers=buffers, axes=axes)


def parts_of(loop: For, olds: Sequence[AnyBuffer], *, axis: int, namer: Namer) -> Parts:
    """The parts of buffers for each iteration of a loop."""
    buffers: list[AnyBuffer] = []
    new = DenseFixed(namer.fresh(f"{loop.var}_rf"), loop.extent)
    for old in olds:
        name = namer.fresh(f"{old.name}_rf")
        if isinstance(old, Buffer):
            shape = (*old.shape[:axis], loop.extent, *old.shape[axis:])
            buffers.append(replace(old, name=name, shape=shape, handle=None))
        else:
            axes = (*old.axes[:axis], new.name, *old.axes[axis:])
            buffers.append(replace(old, name=name, axes=axes, handle=None))
    is_needed = any(not isinstance(old, Buffer) for old in olds)
    return Parts(loop, axis, tuple(buffers), (new,) if is_needed else ())


def fed_iterators(block: Block, loop: str) -> tuple[BlockIter, ...]:
    """The iterators whose value mentions a loop."""
    return tuple(item for item in block.iters if loop in free_vars(item.value))


def factored(site: Site, found: Combining, parts: Parts, *, namer: Namer) -> tuple[Block, str]:
    """The block at a site, reducing into the part of the loop's iteration, and the iterator which tells
    the part; each iterator that the loop feeds is replaced by one for each loop that feeds it."""
    block: Block = site.node
    values = values_at(site)
    fed = fed_iterators(block, parts.loop.var)
    feeding = {name for item in fed for name in free_vars(item.value)}
    loops = [found for found in site.nest if found.var in feeding]
    kept = {item.value: item.var for item in fed}
    names = {
        loop.var: kept.get(index_var(loop.var)) or namer.fresh(f"v{loop.var}") for loop in loops
    }
    part = names[parts.loop.var]

    iters = _iterators(block, fed, loops, names=names, part=part)
    variables = {old: index_var(new) for old, new in names.items()}
    replaced = {item.var: substitute(item.value, variables) for item in fed}
    others = reduction_loops(replace(block, iters=iters), values)
    known = values | {item.var: item.value for item in block.iters}
    conditions: list[Expr] = []
    asked: list[Expr] = []
    for condition in conjuncts(block.predicate):
        used = free_vars(resolve(condition, known))
        is_of_part = parts.loop.var in used and used.isdisjoint(others)
        (asked if is_of_part else conditions).append(substitute(condition, replaced))

    terms = tuple(
        _term(term, buffer.name, parts.element(term.indices, part), asked, replaced, nothing)
        for term, buffer, nothing in zip(found.terms, parts.buffers, found.nothing, strict=True)
    )
    empty = tuple(
        replace(term, value=nothing) for term, nothing in zip(terms, found.nothing, strict=True)
    )
    made = Block(
        namer.fresh(f"{block.name}_rf"),
        iters,
        (found.statement(terms),),
        init=empty,
        predicate=conjoined(conditions),
        annotations=block.annotations,
    )
    return made, part


def _iterators(
    block: Block,
    fed: Sequence[BlockIter],
    loops: Sequence[For],
    *,
    names: Mapping[str, str],
    part: str,
) -> tuple[BlockIter, ...]:
    first = block.iters.index(fed[0])
    before = block.iters[:first]
    places = {item.value: index_var(item.var) for item in before if free_vars(item.value)}
    places |= {index_var(old): index_var(new) for old, new in names.items()}
    variables = {old: index_var(new) for old, new in names.items()}
    replaced = {item.var: substitute(item.value, variables) for item in fed}
    made = tuple(
        BlockIter(
            names[loop.var],
            "S" if names[loop.var] == part else "R",
            Range(with_parts(loop.start, places), with_parts(loop.extent, places)),
            index_var(loop.var),
        )
        for loop in loops
    )
    after = tuple(
        replace(item, domain=substitute(item.domain, replaced))
        for item in block.iters[first:]
        if item not in fed
    )
    return (*before, *made, *after)


def _term(
    term: Store,
    buffer: str,
    at: tuple[Expr, ...],
    asked: Sequence[Expr],
    replaced: Mapping[str, Expr],
    nothing: Const,
) -> Store:
    """What one point adds to its part, which is nothing where it does not satisfy what is asked of the
    part: all parts begin with nothing, whatever is asked."""
    condition = conjoined(asked)
    value: Expr = substitute(term.value, replaced)
    if condition is not None:
        value = IfThenElse(condition, value, nothing)
    return Store(buffer, at, value)


def part_iterator(parts: Parts, name: str) -> BlockIter:
    """The iterator over the parts."""
    return BlockIter(name, "R", Range(ZERO, parts.loop.extent), index_var(parts.loop.var))
