"""The loads of one buffer in a block, each with the condition under which it is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import (
    LoopOrCondition,
    conditions_of_init,
    loops_outside_init,
    without_loops,
)
from gossamer_ir.arith.simplify import TRUE
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import (
    Allocate,
    Block,
    Compare,
    Expr,
    For,
    IfThenElse,
    Let,
    Load,
    Node,
    Stmt,
    Store,
    Unary,
)
from gossamer_ir.traversal.effects import effects_of
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import children
from gossamer_schedule.bounds.predicates import short_circuit_and
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.nests.init_nest import enclosed_block

Conjunction = tuple[Expr, ...]
ElementIndices = tuple[Expr, ...]


class ConditionalLoad(msgspec.Struct, frozen=True):
    """A loaded element and the condition of the load (None: wherever the block runs), in terms of variables
    bound outside of the block's body."""

    indices: tuple[Expr, ...]
    dtype: str
    condition: Expr | None


def loads_of(cursor: Cursor, buffer: str) -> tuple[ConditionalLoad, ...]:
    """Return the distinct elements of the buffer that the body of the block at a cursor loads."""
    return _distinct_loads(
        _LoadCollector(buffer).body(cursor, "body", {}, _StatementContext((), ()))
    )


def loads_and_stores_of(
    cursor: Cursor, buffer: str, dtype: str
) -> tuple[tuple[ConditionalLoad, ...], frozenset[ElementIndices]]:
    """Return the distinct elements of the buffer that the body of the block at a cursor loads or stores, and
    the indices of those that it stores."""
    start = _StatementContext((), ())
    stored = list(_StoreCollector(buffer, dtype).body(cursor, "body", {}, start))
    loads = chain(_LoadCollector(buffer).body(cursor, "body", {}, start), stored)
    return _distinct_loads(loads), frozenset([load.indices for load, _ in stored])


def evaluation_condition(cursor: Cursor, expr: Expr) -> Expr | None:
    """Return the condition under which the body of the block at a cursor evaluates an expression of the
    block's iterators; None if it always does.

    Occurrences in the headers of loops, blocks and allocations are not counted.
    """
    evaluations = _EvaluationCollector(expr).body(cursor, "body", {}, _StatementContext((), ()))
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
        conjunction = short_circuit_and(case)
        if conjunction is None:
            return None
        condition = conjunction if condition is None else IfThenElse(condition, TRUE, conjunction)
    return condition


class _StatementContext(msgspec.Struct, frozen=True):
    """The enclosing conditions and loops of a statement: `above` holds where the innermost enclosing block
    runs, and `within` has the loops and conditions inside that block, the outermost first."""

    above: Conjunction
    within: tuple[LoopOrCondition, ...]

    def conditions(self) -> Conjunction:
        """Return the conditions that hold where the statement runs."""
        return (
            *self.above,
            *(condition for part in self.within for condition in _conditions_of(part)),
        )


class _LoadCollector:
    """Collects the loads of a buffer in a block, each with the conditions under which it is evaluated."""

    def __init__(self, buffer: str) -> None:
        self._buffer = buffer

    def body(
        self, cursor: Cursor, field: str, values: Mapping[str, Expr], context: _StatementContext
    ) -> Iterator[tuple[Any, Conjunction]]:
        """Yield the loads in a body of the statement at a cursor."""
        values, conditions = dict(values), context.conditions()
        for index, statement in enumerate(getattr(cursor.node, field)):
            below = cursor.down(field, index)
            if isinstance(statement, Block):
                values |= {item.var: resolve(item.value, values) for item in statement.iters}
            yield from self._own(statement, values, conditions)
            # After the statement's own loads: a let does not see itself.
            if isinstance(statement, Let):
                values[statement.var.name] = resolve(statement.value, values)
            if isinstance(statement, Block):
                yield from self._init(below, values, context)
            for inner, last in _bodies_of(statement):
                inside = None if last is None else _resolved_header(last, values)
                yield from self.body(
                    below, inner, values, _nested_context(context, statement, inside)
                )

    def _own(
        self, statement: Stmt, values: Mapping[str, Expr], conditions: Conjunction
    ) -> Iterator[tuple[Any, Conjunction]]:
        """Yield the loads in the expressions of a statement itself."""
        for part in effects_of(statement).evaluates:
            yield from self._expression(resolve(part, values), conditions)

    def _init(
        self, cursor: Cursor, values: Mapping[str, Expr], context: _StatementContext
    ) -> Iterator[tuple[Any, Conjunction]]:
        """Yield the loads of an init, which also runs if the loops of the reduction are empty.

        The bounds and conditions of the loops around the init are evaluated for it, too.
        """
        if not cursor.node.init:
            return
        conditions = context.above
        own = (
            _resolved_header(part, values) for part in conditions_of_init(enclosed_block(cursor))
        )
        for part in (
            *without_loops(context.within, loops_outside_init(enclosed_block(cursor))),
            *own,
        ):
            for expr in (part.start, part.extent) if isinstance(part, For) else (part,):
                yield from self._expression(expr, conditions)
            conditions = (*conditions, *_conditions_of(part))
        yield from self.body(cursor, "init", values, _StatementContext(conditions, ()))

    def _is_match(self, expr: Node) -> bool:
        return isinstance(expr, Load) and expr.buffer == self._buffer

    def _expression(self, expr: Node, conditions: Conjunction) -> Iterator[tuple[Any, Conjunction]]:
        match expr:
            case IfThenElse():
                yield from self._expression(expr.condition, conditions)
                yield from self._expression(expr.if_true, (*conditions, expr.condition))
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


def _nested_context(
    context: _StatementContext, statement: Stmt, part: LoopOrCondition | None
) -> _StatementContext:
    """Return the context of a body of a statement, which `part` encloses."""
    within = context.within if part is None else (*context.within, part)
    inner = _StatementContext(context.above, within)
    return _StatementContext(inner.conditions(), ()) if isinstance(statement, Block) else inner


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


def _bodies_of(statement: Stmt) -> Iterator[tuple[str, LoopOrCondition | None]]:
    """Yield the fields of the bodies of a statement except an init, each with the loop or condition that
    encloses it."""
    for body in effects_of(statement).bodies:
        if not body.is_init:
            yield body.field, statement if isinstance(statement, For) else body.condition
