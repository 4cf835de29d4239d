"""Conditions of blocks: which block variables and loops they mention, and adding to them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import Values
from gossamer_ir.arith.simplify import FALSE
from gossamer_ir.core.build import (
    ZERO,
    conjoined,
    conjuncts,
    in_range,
    integer_value,
    without_guard,
)
from gossamer_ir.nodes import Binary, Block, BlockIter, Compare, Expr, IfThenElse, Load, Search, Var
from gossamer_ir.traversal.effects import READS
from gossamer_ir.traversal.walk import free_vars, resolve, substitute, walk


def below(value: Expr, extent: Expr) -> Compare:
    """Return the condition value < extent."""
    return Compare("lt", value, extent)


def bounded(block: Block, loop: str, *, extent: Expr) -> Block:
    """The block under the further condition that a loop's variable is below its extent, said by the
    block variable that stands for the loop where there is one."""
    restricted = _restricted(block, below(*_position(block, loop, extent)), loop)
    iters = (replace(item, value=guarded(item.value, loop, extent=extent)) for item in block.iters)
    return replace(restricted, iters=tuple(iters))


def within(block: Block, loop: str, *, extent: Expr) -> Block:
    """The block under the further condition that a loop's variable is in [0, extent), said as in
    `bounded`, in iterations that the loop did not have: what its predicate loads exists in the others,
    and, unless it is about the loop, where an init runs."""
    var, plain = _position(block, loop, extent)
    end = plain if without_guard(extent) == extent else extent
    condition = Binary("and", *in_range(var, end))
    values = {item.var: item.value for item in block.iters}
    parts = [
        IfThenElse(condition, part, FALSE)
        if _loads(part) and (not block.init or loop in free_vars(resolve(part, values)))
        else part
        for part in conjuncts(block.predicate)
    ]
    return replace(block, predicate=conjoined((*parts, condition)))


def _position(block: Block, loop: str, extent: Expr) -> tuple[Expr, Expr]:
    """Return the variable that stands for a loop in a block, and its bound."""
    var = Var(loop, "int64")
    for found in block.iters:
        if found.value == var:
            return Var(found.var, "int64"), _extent_in_block(block, found, extent)
    return var, extent


def _restricted(block: Block, condition: Expr, loop: str) -> Block:
    values = {item.var: item.value for item in block.iters}
    return replace(block, predicate=_under(condition, block.predicate, loop, values))


def _extent_in_block(block: Block, found: BlockIter, extent: Expr) -> Expr:
    """The extent by block variables, where the domain is known to be the loop's."""
    values = {item.var: item.value for item in block.iters}
    plain = without_guard(extent)
    is_same = integer_value(found.domain.start) == 0 and (
        substitute(found.domain.extent, values) == plain
    )
    return found.domain.extent if is_same else plain


def bounded_by_domain(block: Block, found: BlockIter) -> Block:
    """Return the block with the further condition that an iterator is within its domain."""
    condition = below(Var(found.var, "int64"), found.domain.extent)
    if condition in conjuncts(block.predicate):
        return block
    return replace(block, predicate=_under(condition, block.predicate, found.var, {}))


def _under(condition: Expr, predicate: Expr | None, name: str, values: Values) -> Expr:
    """Return the conjunction of a condition on a variable and a predicate.

    Parts of the predicate that load by that variable are evaluated only if the condition holds.
    """
    parts = [
        IfThenElse(condition, part, FALSE)
        if any(name in free_vars(resolve(load, values)) for load in _loads(part))
        else part
        for part in conjuncts(predicate)
    ]
    return conjoined((*parts, condition)) or condition


def in_turn(conditions: Sequence[Expr]) -> Expr | None:
    """Return the short-circuit conjunction of conditions, None if there are none."""
    result: Expr | None = None
    for condition in reversed(conditions):
        result = condition if result is None else IfThenElse(condition, result, FALSE)
    return result


def _loads(expr: Expr) -> list[Load | Search]:
    return [found for found in walk(expr) if isinstance(found, READS)]


def guarded(inner: Expr, loop: str, *, extent: Expr, always: bool = False) -> Expr:
    """A bound that loads by a loop's variable, not evaluated beyond the loop's end; one that does not load,
    either, where it is that of a loop which is also run for an init, without the condition of the block."""
    is_read_by = any(loop in free_vars(found) for found in _loads(inner))
    if is_read_by or (always and loop in free_vars(inner)):
        return IfThenElse(below(Var(loop, "int64"), extent), inner, ZERO)
    return inner


def is_bound_of(condition: Expr, found: BlockIter) -> bool:
    """Return whether a condition is the upper bound of an iterator."""
    return condition == below(Var(found.var, "int64"), found.domain.extent)
