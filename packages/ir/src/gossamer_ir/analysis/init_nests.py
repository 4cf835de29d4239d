"""What the init of a block runs in: what stands around the block from the outermost loop that feeds its
reduction on, but for loops that only feed the reduction, and what conditions say about these.

A loop runs for the init, too, where an iterator that selects the element mentions it, or the range of
another loop that runs. The interpreter follows a definition of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from gossamer_ir.core.build import conjoined, conjuncts
from gossamer_ir.nodes import Block, BlockIter, Expr, For
from gossamer_ir.traversal.walk import free_vars

Values: TypeAlias = Mapping[str, Expr]
"""What block variables and lets stand for."""

Around: TypeAlias = For | Expr
"""A loop or a condition that a statement stands in."""


def reduction_loops(block: Block, values: Values) -> set[str]:
    """The variables that the values of reduction iterators mention."""
    return mentioned((found.value for found in block.iters if found.kind == "R"), values)


def spatial_loops(block: Block, values: Values) -> set[str]:
    """The variables that the values of spatial iterators mention."""
    return mentioned((found.value for found in block.iters if found.kind == "S"), values)


def selecting(block: Block) -> tuple[BlockIter, ...]:
    """The spatial iterators of a block, and those of the reduction that the init, or the domain of such an
    iterator, mentions: points of a reduction may meet in the element that is initialised."""
    needed = set(free_vars(*block.init))
    found: list[BlockIter] = []
    for item in reversed(block.iters):
        if item.kind == "S" or item.var in needed:
            needed |= free_vars(item.domain)
            found.insert(0, item)
    return tuple(found)


def needed_by_init(block: Block, loops: Sequence[For], values: Values) -> set[str]:
    """The variables that select what the init of a block writes, and those that the ranges mention of the
    loops around it, outermost first, that run for it."""
    needed = mentioned((found.value for found in selecting(block)), values)
    reducing = reduction_loops(block, values)
    for loop in reversed(loops):
        if loop.var in needed or loop.var not in reducing:
            needed |= mentioned((loop.start, loop.extent), values)
    return needed


def left_out(block: Block, loops: Sequence[For], values: Values) -> set[str]:
    """Those of the loops around a block, outermost first, that are not run for its init: they feed a
    reduction, and nothing that the init needs.

    >>> from gossamer_ir.core.build import index, index_var
    >>> from gossamer_ir.nodes import Range
    >>> iters = [
    ...     BlockIter(f"v{var}", kind, Range(index(0), index(8)), index_var(var))
    ...     for var, kind in (("i", "S"), ("j", "R"))
    ... ]
    >>> block = Block("b", tuple(iters), ())
    >>> i, j = (For(var, index(0), index(8), ()) for var in "ij")
    >>> left_out(block, (i, j), {})
    {'j'}
    >>> left_out(block, (j, For("i", index(0), index_var("j"), ())), {})
    set()
    """
    found = reduction_loops(block, values).intersection(loop.var for loop in loops)
    return found - needed_by_init(block, loops, values) if found else found


def unselecting(block: Block, loops: Sequence[For], values: Values) -> set[str]:
    """The iterators of a block that select no element to be initialised, and the loops that are not run
    for its init."""
    kept = selecting(block)
    return left_out(block, loops, values) | {item.var for item in block.iters if item not in kept}


def conditions_of_init(block: Block, loops: Sequence[For], values: Values) -> tuple[Expr, ...]:
    """The parts of the predicate of a block that hold where its init runs."""
    if block.predicate is None:
        return ()
    own = {item.var for item in block.iters}
    outside = {name: value for name, value in values.items() if name not in own}
    dropped = unselecting(block, loops, outside)
    parts = conjuncts(block.predicate)
    return tuple(part for part in parts if not mentioned((part,), outside) & dropped)


def without_loops(parts: Iterable[Around], dropped: Set[str]) -> Iterator[Around]:
    """What a statement stands in but for some loops, and for what conditions say about these."""
    for found in parts:
        if not isinstance(found, For):
            held = (part for part in conjuncts(found) if not free_vars(part) & dropped)
            if (condition := conjoined(held)) is not None:
                yield condition
        elif found.var not in dropped:
            yield found


def mentioned(exprs: Iterable[Expr], values: Values) -> set[str]:
    """The variables that expressions mention, but for those that stand for something, whose are."""
    names = [name for expr in exprs for name in free_vars(expr)]
    if values.keys().isdisjoint(names):
        return set(names)
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            if name in values:
                names.extend(free_vars(values[name]))
    return found - values.keys()
