"""The loads of one buffer in a block, each with the condition under which it is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses import StatementInContext, statements_in_context
from gossamer_ir.analysis.init_nests import (
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
    Stmt,
    Store,
    Unary,
)
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import children
from gossamer_schedule.cursor.cursor_at import Cursor

Conjunction: TypeAlias = tuple[Expr, ...]
ElementIndices: TypeAlias = tuple[Expr, ...]


class ConditionalLoad(msgspec.Struct, frozen=True):
    """A loaded element and the condition of the load (None: wherever the block runs), in terms of variables
    bound outside of the block's body."""

    indices: tuple[Expr, ...]
    dtype: str
    condition: Expr | None


def loads_of(cursor: Cursor, buffer: str) -> tuple[ConditionalLoad, ...]:
    """Return the distinct elements of the buffer that the body of the block at a cursor loads."""
    return _distinct_loads(_LoadCollector(buffer).collect(cursor.node))


def loads_and_stores_of(
    cursor: Cursor, buffer: str, dtype: str
) -> tuple[tuple[ConditionalLoad, ...], frozenset[ElementIndices]]:
    """Return the distinct elements of the buffer that the body of the block at a cursor loads or stores, and
    the indices of those that it stores."""
    stored = list(_StoreCollector(buffer, dtype).collect(cursor.node))
    loads = chain(_LoadCollector(buffer).collect(cursor.node), stored)
    return _distinct_loads(loads), frozenset([load.indices for load, _ in stored])


def evaluation_condition(cursor: Cursor, expr: Expr) -> Expr | None:
    """Return the condition under which the body of the block at a cursor evaluates an expression of the
    block's iterators; None if it always does.

    Occurrences in the headers of loops, blocks and allocations are not counted.
    """
    evaluations = _EvaluationCollector(expr).collect(cursor.node)
    return _disjunction([conditions for _, conditions in evaluations])


def _distinct_loads(loads: Iterable[tuple[Any, Conjunction]]) -> tuple[ConditionalLoad, ...]:
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


_Place: TypeAlias = StatementInContext[_BlockContext]


def _context_inside(at: _Place, body: Body) -> _BlockContext:
    """Return the context of a body of a statement. An init also runs if the loops of the reduction are
    empty."""
    context, statement = at.context, at.statement
    if isinstance(statement, Block) and body.is_init:
        # Not all of `within`: some of its loops are those of the reduction, before which the init runs.
        conditions = context.above
        for part in _init_nest(statement, at):
            conditions = (*conditions, *_conditions_of(part))
        return _BlockContext(conditions)
    enclosing = statement if isinstance(statement, For) else body.condition
    if enclosing is not None:
        within = (*context.within, _resolved_header(enclosing, at.values))
        context = _BlockContext(context.above, within)
    return _BlockContext(context.conditions()) if isinstance(statement, Block) else context


def _init_nest(block: Block, at: _Place) -> tuple[LoopOrCondition, ...]:
    """Return the loops and conditions in which the init of a block runs, up to the outer block."""
    within = at.context.within
    loops = tuple(part for part in within if isinstance(part, For))
    enclosed = EnclosedBlock(block, loops, at.values)
    own = (_resolved_header(part, at.values) for part in conditions_of_init(enclosed))
    return (*without_loops(within, loops_outside_init(enclosed)), *own)


class _LoadCollector:
    """Collects the loads of a buffer in a block, each with the conditions under which it is evaluated."""

    def __init__(self, buffer: str) -> None:
        self._buffer = buffer

    def collect(self, block: Block) -> Iterator[tuple[Any, Conjunction]]:
        """Yield the loads in the body of a block."""
        start = _BlockContext()
        for at in statements_in_context(block.body, start, _context_inside, values={}):
            yield from self._own(at.statement, at.values, at.context.conditions())
            if isinstance(at.statement, Block) and at.statement.init:
                yield from self._init_header(at.statement, at)

    def _own(
        self, statement: Stmt, values: Mapping[str, Expr], conditions: Conjunction
    ) -> Iterator[tuple[Any, Conjunction]]:
        """Yield the loads in the expressions of a statement itself."""
        for part in effects_of(statement).evaluates:
            yield from self._expression(resolve(part, values), conditions)

    def _init_header(self, block: Block, at: _Place) -> Iterator[tuple[Any, Conjunction]]:
        """Yield the loads in the bounds and conditions around an init, which are evaluated for it, too."""
        conditions = at.context.above
        for part in _init_nest(block, at):
            for expr in (part.start, part.extent) if isinstance(part, For) else (part,):
                yield from self._expression(expr, conditions)
            conditions = (*conditions, *_conditions_of(part))

    def _is_match(self, expr: Node) -> bool:
        return isinstance(expr, Load) and expr.buffer == self._buffer

    def _expression(self, expr: Node, conditions: Conjunction) -> Iterator[tuple[Any, Conjunction]]:
        match expr:
            case IfThenElse():
                yield from self._expression(expr.condition, conditions)
                yield from self._expression(expr.if_true, (*conditions, expr.condition))
                # Only the branch that is taken is evaluated.
                negated = Unary("not", expr.condition)
                yield from self._expression(expr.if_false, (*conditions, negated))
            case _:
                if self._is_match(expr):
                    yield expr, conditions
                for child in children(expr):
                    yield from self._expression(child, conditions)


class _StoreCollector(_LoadCollector):
    """Collects the stores to a buffer, each as a load of its element."""

    def __init__(self, buffer: str, dtype: str) -> None:
        super().__init__(buffer)
        self._dtype = dtype

    def _own(
        self, statement: Stmt, values: Mapping[str, Expr], conditions: Conjunction
    ) -> Iterator[tuple[Any, Conjunction]]:
        if isinstance(statement, Store) and statement.buffer == self._buffer:
            on = () if statement.predicate is None else (resolve(statement.predicate, values),)
            indices = tuple(resolve(at, values) for at in statement.indices)
            yield Load(self._buffer, indices, self._dtype), (*conditions, *on)


HEADERS = (Allocate, Block, For)
"""The statements whose own expressions are ranges, sizes and predicates."""


class _EvaluationCollector(_LoadCollector):
    """Collects the evaluations of an expression outside of `HEADERS`."""

    def __init__(self, expr: Expr) -> None:
        super().__init__("")
        self._expr = expr

    def _is_match(self, expr: Node) -> bool:
        return expr == self._expr

    def _own(
        self, statement: Stmt, values: Mapping[str, Expr], conditions: Conjunction
    ) -> Iterator[tuple[Any, Conjunction]]:
        if not isinstance(statement, HEADERS):
            yield from super()._own(statement, values, conditions)


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
