"""The loads of one buffer in a block, each with the condition under which it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import StmtInContext, stmts_in_context
from gossamer_ir.analysis.accesses.init_nests import (
    EnclosedBlock,
    LoopOrCondition,
    conditions_of_init,
    loops_outside_init,
    without_loops,
)
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.core.conditions import short_circuit_conjunction, short_circuit_or
from gossamer_ir.core.statement_kinds import Body, effects_of
from gossamer_ir.nodes import (
    Allocate,
    Block,
    Compare,
    Expr,
    For,
    IfThenElse,
    Load,
    Node,
    Store,
    Unary,
)
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import children
from gossamer_schedule.cursor.cursor_at import Cursor

# Other statements: their expressions count as evaluations.
HEADERS = (Allocate, Block, For)
"""The statements whose own expressions are ranges, sizes and predicates."""

Conjunction: TypeAlias = tuple[Expr, ...]
ElementIndices: TypeAlias = tuple[Expr, ...]
_Evaluation: TypeAlias = tuple[Any, Conjunction]
"""An expression and the conditions under which it is evaluated."""

_Test: TypeAlias = Callable[[Node], bool]


class ConditionalLoad(msgspec.Struct, frozen=True):
    """A loaded element and the condition of the load (None: wherever the block runs), in terms of variables
    bound outside of the block's body."""

    indices: tuple[Expr, ...]
    dtype: str
    condition: Expr | None


def loads_of(cursor: Cursor[Block], buffer_name: str) -> tuple[ConditionalLoad, ...]:
    """Return the distinct elements of the buffer that the body of the block at a cursor loads."""
    return _distinct_loads(_evaluations(cursor.node, _is_load_of(buffer_name)))


def loads_and_stores_of(
    cursor: Cursor[Block], buffer_name: str, dtype: str
) -> tuple[tuple[ConditionalLoad, ...], frozenset[ElementIndices]]:
    """Return the distinct elements of the buffer that the body of the block at a cursor loads or stores, and
    the indices of those that it stores."""
    stored = list(_stored_elements(cursor.node, buffer_name, dtype))
    loads = chain(_evaluations(cursor.node, _is_load_of(buffer_name)), stored)
    return _distinct_loads(loads), frozenset([load.indices for load, _ in stored])


def evaluation_condition(cursor: Cursor[Block], expr: Expr) -> Expr | None:
    """Return the condition under which the body of the block at a cursor evaluates an expression of the
    block's iterators; None if it always does.

    Occurrences in the headers of loops, blocks and allocations are not counted.
    """
    evaluations = _evaluations(cursor.node, lambda node: node == expr, in_headers=False)
    return _disjunction([conditions for _, conditions in evaluations])


def _distinct_loads(loads: Iterable[_Evaluation]) -> tuple[ConditionalLoad, ...]:
    by_indices: dict[tuple[Expr, ...], tuple[str, list[Conjunction]]] = {}
    for load, conditions in loads:
        _, cases = by_indices.setdefault(load.indices, (load.dtype, []))
        _add_case(cases, conditions)
    return tuple(
        ConditionalLoad(at, dtype, _disjunction(cases)) for at, (dtype, cases) in by_indices.items()
    )


def _add_case(cases: list[Conjunction], conditions: Conjunction) -> None:
    """Add a case to a disjunction, unless another case covers it; drop the cases that it covers."""
    # Fewer conditions hold more often.
    if any(set(case) <= set(conditions) for case in cases):
        return
    cases[:] = [case for case in cases if not set(conditions) <= set(case)]
    cases.append(conditions)


def _disjunction(cases: Iterable[Conjunction]) -> Expr | None:
    """Return the condition that one of the cases holds; None if it always does."""
    condition: Expr | None = None
    for case in cases:
        holds = short_circuit_conjunction(*case)
        if holds is None:
            return None
        condition = short_circuit_or(condition, holds)
    return condition


class _BlockContext(msgspec.Struct, frozen=True):
    """The enclosing conditions and loops of a statement: `above` holds where the innermost enclosing block
    runs, and `within` has the loops and conditions inside that block, the outermost first."""

    above: Conjunction = ()
    within: tuple[LoopOrCondition, ...] = ()

    def conditions(self) -> Conjunction:
        """Return the conditions that hold where the statement runs."""
        return (
            *self.above,
            *(condition for part in self.within for condition in _conditions_of(part)),
        )


_EnclosedStmt: TypeAlias = StmtInContext[_BlockContext]


# Other statements: their expressions count as evaluations.
def _context_inside(enclosed: _EnclosedStmt, body: Body) -> _BlockContext:
    """Return the context of a body of a statement. An init also runs if the loops of the reduction are
    empty."""
    context, stmt = enclosed.context, enclosed.stmt
    if isinstance(stmt, Block) and body.is_init:
        # Not all of `within`: some of its loops are those of the reduction, before which the init runs.
        conditions = context.above
        for part in _init_nest(stmt, enclosed):
            conditions = (*conditions, *_conditions_of(part))
        return _BlockContext(conditions)
    enclosing = stmt if isinstance(stmt, For) else body.condition
    if enclosing is not None:
        within = (*context.within, _resolved_header(enclosing, enclosed.values))
        context = _BlockContext(context.above, within)
    return _BlockContext(context.conditions()) if isinstance(stmt, Block) else context


def _init_nest(block: Block, enclosed: _EnclosedStmt) -> tuple[LoopOrCondition, ...]:
    """Return the loops and conditions in which the init of a block runs, up to the outer block."""
    within = enclosed.context.within
    loops = tuple(part for part in within if isinstance(part, For))
    enclosed_block = EnclosedBlock(block, loops, enclosed.values)
    init_conditions = (
        _resolved_header(part, enclosed.values) for part in conditions_of_init(enclosed_block)
    )
    return (*without_loops(within, loops_outside_init(enclosed_block)), *init_conditions)


def _stmts(block: Block) -> Iterator[_EnclosedStmt]:
    """Yield the statements in the body of a block."""
    return stmts_in_context(block.body, _BlockContext(), _context_inside, values={})


def _evaluations(
    block: Block, is_match: _Test, *, in_headers: bool = True
) -> Iterator[_Evaluation]:
    """Yield the matching expressions in the body of a block; those of `HEADERS` only if `in_headers`."""
    for enclosed in _stmts(block):
        if in_headers or not isinstance(enclosed.stmt, HEADERS):
            conditions = enclosed.context.conditions()
            for part in effects_of(enclosed.stmt).evaluates:
                yield from _matches(resolve(part, enclosed.values), conditions, is_match)
        if isinstance(enclosed.stmt, Block) and enclosed.stmt.init:
            yield from _matches_around_init(enclosed.stmt, enclosed, is_match)


def _matches_around_init(
    block: Block, enclosed: _EnclosedStmt, is_match: _Test
) -> Iterator[_Evaluation]:
    """Yield the matches in the bounds and conditions around an init, which are evaluated for it, too."""
    conditions = enclosed.context.above
    for part in _init_nest(block, enclosed):
        for expr in (part.start, part.extent) if isinstance(part, For) else (part,):
            yield from _matches(expr, conditions, is_match)
        conditions = (*conditions, *_conditions_of(part))


def _matches(expr: Node, conditions: Conjunction, is_match: _Test) -> Iterator[_Evaluation]:
    """Yield the matching parts of an expression that is evaluated under some conditions."""
    if isinstance(expr, IfThenElse):
        # Only the branch that is taken is evaluated.
        negated = Unary("not", expr.condition)
        yield from _matches(expr.condition, conditions, is_match)
        yield from _matches(expr.if_true, (*conditions, expr.condition), is_match)
        yield from _matches(expr.if_false, (*conditions, negated), is_match)
        return
    if is_match(expr):
        yield expr, conditions
    for child in children(expr):
        yield from _matches(child, conditions, is_match)


def _is_load_of(buffer_name: str) -> _Test:
    return lambda node: isinstance(node, Load) and node.buffer == buffer_name


def _stored_elements(block: Block, buffer_name: str, dtype: str) -> Iterator[_Evaluation]:
    """Yield the elements that a block stores to a buffer, each as a load of it."""
    for enclosed in _stmts(block):
        store = enclosed.stmt
        if isinstance(store, Store) and store.buffer == buffer_name:
            on = () if store.predicate is None else (resolve(store.predicate, enclosed.values),)
            indices = tuple(resolve(index, enclosed.values) for index in store.indices)
            yield Load(buffer_name, indices, dtype), (*enclosed.context.conditions(), *on)


def _resolved_header(part: LoopOrCondition, values: Mapping[str, Expr]) -> LoopOrCondition:
    """Return a condition, or a loop without its body, in terms of variables bound outside."""
    header = replace(part, body=()) if isinstance(part, For) else part
    resolved: LoopOrCondition = resolve(header, values)
    return resolved


def _conditions_of(part: LoopOrCondition) -> Conjunction:
    """Return the conditions that hold in a loop, or under a condition."""
    if not isinstance(part, For):
        return (part,)
    return () if (integer_value(part.extent) or 0) > 0 else (Compare("gt", part.extent, ZERO),)
