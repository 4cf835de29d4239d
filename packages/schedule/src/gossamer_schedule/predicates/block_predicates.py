"""Predicates of blocks: bounds of loops and iterators, and the order in which parts are evaluated."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import ValuesOfVars
from gossamer_ir.core.build import ZERO, integer_value, unconditional_extent
from gossamer_ir.core.conditions import conjunction, conjuncts, in_range, short_circuit_and
from gossamer_ir.nodes import Binary, Block, BlockIter, Compare, Expr, IfThenElse, Load, Search, Var
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import walk


def less_than(value: Expr, extent: Expr) -> Compare:
    """Return the condition value < extent."""
    return Compare("lt", value, extent)


def with_upper_bound(block: Block, loop_name: str, *, extent: Expr) -> Block:
    """Return the block with the further condition that a loop's variable is below its extent.

    The condition uses the block iterator that is bound to the loop, if there is one.
    """
    condition = less_than(*_var_and_extent(block, loop_name, extent))
    return _restrict(block, loop_name, condition, extent=extent)


def with_conditional_bound(block: Block, loop_name: str, *, extent: Expr) -> Block:
    """Return the block with the further condition that a loop's variable is below its extent, for a loop that
    also runs if the condition of the extent does not hold.

    The elements that the extent reads need not exist then, so the bound is evaluated only if the condition
    holds.
    """
    bound: Expr = less_than(*_var_and_extent(block, loop_name, extent))
    # Innermost first, so that the outermost condition is evaluated before the others.
    for condition in reversed(conditions_of_extent(extent)):
        bound = short_circuit_and(_in_block(condition, block), bound)
    return _restrict(block, loop_name, bound, extent=extent)


def conditions_of_extent(extent: Expr) -> list[Expr]:
    """Return the conditions without which a loop has no iteration, in the order of evaluation."""
    conditions: list[Expr] = []
    while extent != unconditional_extent(extent):
        assert isinstance(extent, IfThenElse)
        conditions.append(extent.condition)
        extent = extent.if_true
    return conditions


def _in_block(condition: Expr, block: Block) -> Expr:
    """Return the part of a block's predicate that is equal to a condition, or the condition."""
    values = {iterator.var: iterator.value for iterator in block.iters}
    for part in conjuncts(block.predicate):
        if not _reads_in(part) and substitute(part, values) == condition:
            return part
    return condition


def _restrict(block: Block, loop_name: str, condition: Expr, *, extent: Expr) -> Block:
    """Return the block with a condition on a loop's variable, and iterators that read nothing beyond its
    extent."""
    restricted = _with_condition(block, condition, loop_name)
    iters = (
        replace(iterator, value=zero_beyond_end(iterator.value, loop_name, extent=extent))
        for iterator in block.iters
    )
    return replace(restricted, iters=tuple(iters))


def with_range_condition(block: Block, loop_name: str, *, extent: Expr) -> Block:
    """Return the block with the further condition that a loop's variable is in [0, extent).

    The loop has gained iterations outside of that range. Parts of the predicate that load are evaluated
    only inside it, since the loaded elements need not exist elsewhere. If the block has an init, parts
    that do not depend on the loop stay as they are: the init runs under them, too.
    """
    var, plain = _var_and_extent(block, loop_name, extent)
    end = plain if unconditional_extent(extent) == extent else extent
    condition = Binary("and", *in_range(var, end))
    values = {iterator.var: iterator.value for iterator in block.iters}
    parts = [
        short_circuit_and(condition, part)
        if _reads_in(part) and (not block.init or loop_name in free_vars(resolve(part, values)))
        else part
        for part in conjuncts(block.predicate)
    ]
    return replace(block, predicate=conjunction(*parts, condition))


def conjunction_with_inner(predicate: Expr | None, conditions: Sequence[Expr]) -> Expr | None:
    """Return the conjunction of the predicate of a block and conditions that its body evaluates.

    Conditions that load are evaluated only if the predicate holds, as in the body.

    >>> from gossamer_ir.script import parse_expr, print_expr
    >>> names = {"i": "int64", "X": "float32"}
    >>> inner = parse_expr("X[i] > 0.0", names)
    >>> print_expr(conjunction_with_inner(parse_expr("i < 8", names), [inner]))
    'i < 8 and T.if_then_else(i < 8, X[i] > 0.0, False)'
    """
    if predicate is None:
        return conjunction(*conditions)
    inner = [
        short_circuit_and(predicate, condition) if _reads_in(condition) else condition
        for condition in conditions
    ]
    return conjunction(*conjuncts(predicate), *inner)


def _var_and_extent(block: Block, loop_name: str, extent: Expr) -> tuple[Expr, Expr]:
    """Return the iterator that is bound to a loop, or the loop's variable, and its bound."""
    var = Var(loop_name, "int64")
    for iterator in block.iters:
        if iterator.value == var:
            return Var(iterator.var, "int64"), _extent_in_block(block, iterator, extent)
    return var, extent


def _with_condition(block: Block, condition: Expr, loop_name: str) -> Block:
    values = {iterator.var: iterator.value for iterator in block.iters}
    return replace(
        block, predicate=_conjunction_with_bound(condition, block.predicate, loop_name, values)
    )


def _extent_in_block(block: Block, iterator: BlockIter, extent: Expr) -> Expr:
    """Return the extent in terms of iterators if the domain is the range of the loop, else without its
    condition."""
    values = {iterator.var: iterator.value for iterator in block.iters}
    plain = unconditional_extent(extent)
    is_same = integer_value(iterator.domain.start) == 0 and (
        substitute(iterator.domain.extent, values) == plain
    )
    return iterator.domain.extent if is_same else plain


def with_domain_bound(block: Block, iterator: BlockIter) -> Block:
    """Return the block with the further condition that an iterator is within its domain."""
    condition = less_than(Var(iterator.var, "int64"), iterator.domain.extent)
    if condition in conjuncts(block.predicate):
        return block
    return replace(
        block, predicate=_conjunction_with_bound(condition, block.predicate, iterator.var, {})
    )


def _conjunction_with_bound(
    condition: Expr, predicate: Expr | None, name: str, values: ValuesOfVars
) -> Expr:
    """Return the conjunction of a condition on a variable and a predicate.

    Parts of the predicate that load by that variable are evaluated only if the condition holds.
    """
    parts = [
        short_circuit_and(condition, part)
        if any(name in free_vars(resolve(load, values)) for load in _reads_in(part))
        else part
        for part in conjuncts(predicate)
    ]
    return conjunction(*parts, condition) or condition


def _reads_in(expr: Expr) -> list[Load | Search]:
    return [node for node in walk(expr) if isinstance(node, READS)]


def zero_beyond_end(inner: Expr, loop_name: str, *, extent: Expr, always: bool = False) -> Expr:
    """Return a bound that is 0 beyond a loop's end, where an element that it loads may not exist.

    A bound without loads that depend on the loop stays as it is, unless `always`: then any dependence on the
    loop counts. Loops that also run for an init need that, as the init lacks the predicate of the block.
    """
    is_loading_by_loop = any(loop_name in free_vars(load) for load in _reads_in(inner))
    if is_loading_by_loop or (always and loop_name in free_vars(inner)):
        return IfThenElse(less_than(Var(loop_name, "int64"), extent), inner, ZERO)
    return inner


def is_bound_of(condition: Expr, iterator: BlockIter) -> bool:
    """Return whether a condition is the upper bound of an iterator."""
    return condition == less_than(Var(iterator.var, "int64"), iterator.domain.extent)
