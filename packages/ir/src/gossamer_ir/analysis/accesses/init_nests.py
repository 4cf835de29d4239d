"""The loops and conditions that the init of a block runs in.

The init runs just before the outermost loop that feeds a reduction iterator. Inside, it needs its own copy
of the nest without the loops that only feed the reduction, and without conditions on these. A loop that
feeds the reduction is kept if an iterator that selects the element depends on it, or the range of another
loop that is kept. The interpreter has an independent definition, so that tests can compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.nodes import Block, BlockIter, Expr, For
from gossamer_ir.traversal.free_vars import free_vars

ValuesOfVars: TypeAlias = Mapping[str, Expr]
"""The values of block variables and lets."""

LoopOrCondition: TypeAlias = For | Expr
"""An enclosing loop or condition."""

_NO_VALUES: ValuesOfVars = MappingProxyType({})


class EnclosedBlock(msgspec.Struct, frozen=True):
    """A block, the loops around it (outermost first), and the values of variables that are bound outside."""

    block: Block
    loops: Sequence[For] = ()
    values: ValuesOfVars = _NO_VALUES


def reduction_loops(block: Block, values: ValuesOfVars) -> set[str]:
    """Return the variables on which the values of reduction iterators depend."""
    return vars_used((iterator.value for iterator in block.iters if iterator.kind == "R"), values)


def spatial_loops(block: Block, values: ValuesOfVars) -> set[str]:
    """Return the variables on which the values of spatial iterators depend."""
    return vars_used((iterator.value for iterator in block.iters if iterator.kind == "S"), values)


def iters_of_init(block: Block) -> tuple[BlockIter, ...]:
    """Return the iterators that select the element to be initialized: the spatial ones, and the reduction
    iterators that occur in the init or in the domain of a selecting iterator."""
    needed = set(free_vars(*block.init))
    iters: list[BlockIter] = []
    # Backwards: a domain may use iterators before its own, which are then needed as well.
    for iterator in reversed(block.iters):
        if iterator.kind == "S" or iterator.var in needed:
            needed |= free_vars(iterator.domain)
            iters.insert(0, iterator)
    return tuple(iters)


def init_dependences(enclosed: EnclosedBlock) -> set[str]:
    """Return the variables on which the element that an init writes depends, directly or through the ranges
    of the loops that are kept for it."""
    values = enclosed.values
    needed = vars_used((iterator.value for iterator in iters_of_init(enclosed.block)), values)
    reducing = reduction_loops(enclosed.block, values)
    # From the inside out, since a range may depend on loops around its own.
    for loop in reversed(enclosed.loops):
        if loop.var in needed or loop.var not in reducing:
            needed |= vars_used((loop.start, loop.extent), values)
    return needed


def loops_outside_init(enclosed: EnclosedBlock) -> set[str]:
    """Return the loops around a block that its init leaves out: they feed a reduction iterator, and the init
    does not depend on them.

    >>> from gossamer_ir.core.build import index, index_var
    >>> from gossamer_ir.nodes import Range
    >>> iters = [
    ...     BlockIter(f"v{var}", kind, Range(index(0), index(8)), index_var(var))
    ...     for var, kind in (("i", "S"), ("j", "R"))
    ... ]
    >>> block = Block("b", tuple(iters), ())
    >>> i, j = (For(var, index(0), index(8), ()) for var in "ij")
    >>> loops_outside_init(EnclosedBlock(block, (i, j)))
    {'j'}
    >>> loops_outside_init(EnclosedBlock(block, (j, For("i", index(0), index_var("j"), ()))))
    set()
    """
    feeding = reduction_loops(enclosed.block, enclosed.values).intersection(
        loop.var for loop in enclosed.loops
    )
    return feeding - init_dependences(enclosed) if feeding else feeding


def vars_outside_init(enclosed: EnclosedBlock) -> set[str]:
    """Return the iterators of a block that do not select the element to be initialized, and the loops that
    its init leaves out."""
    kept = iters_of_init(enclosed.block)
    return loops_outside_init(enclosed) | {
        iterator.var for iterator in enclosed.block.iters if iterator not in kept
    }


def conditions_of_init(enclosed: EnclosedBlock) -> tuple[Expr, ...]:
    """Return the conjuncts of the predicate of a block that apply to its init."""
    if enclosed.block.predicate is None:
        return ()
    iterator_vars = {iterator.var for iterator in enclosed.block.iters}
    # The iterators stand for themselves here: a conjunct on one of them is kept if the init has it.
    outside = {name: value for name, value in enclosed.values.items() if name not in iterator_vars}
    dropped = vars_outside_init(EnclosedBlock(enclosed.block, enclosed.loops, outside))
    parts = conjuncts(enclosed.block.predicate)
    return tuple(part for part in parts if not vars_used((part,), outside) & dropped)


def without_loops(parts: Iterable[LoopOrCondition], dropped: Set[str]) -> Iterator[LoopOrCondition]:
    """Yield enclosing loops and conditions without the dropped loops, and without conjuncts that mention
    these."""
    for item in parts:
        # A condition is split: one conjunct may depend on a dropped loop, and the others still hold.
        if not isinstance(item, For):
            held = (part for part in conjuncts(item) if not free_vars(part) & dropped)
            if (condition := conjunction(*held)) is not None:
                yield condition
        elif item.var not in dropped:
            yield item


def vars_used(exprs: Iterable[Expr], values: ValuesOfVars) -> set[str]:
    """Return the variables on which expressions depend, with the variables in `values` replaced by those on
    which their values depend."""
    pending = [name for expr in exprs for name in free_vars(expr)]
    # The common case, which needs no worklist.
    if values.keys().isdisjoint(pending):
        return set(pending)
    used: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in used:
            used.add(name)
            if name in values:
                pending.extend(free_vars(values[name]))
    return used - values.keys()
