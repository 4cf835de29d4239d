"""Lowers the math functions without an instruction on the target in the statements of a function."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Call,
    Expr,
    Function,
    Load,
    Stmt,
    Store,
    While,
)
from gossamer_ir.traversal.fields import FIELDS, body_fields
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.statement_queries import while_body
from gossamer_ir.traversal.walk import collect, walk
from gossamer_lower.math.calls.call_lowering import CallLowerer
from gossamer_lower.math.calls.lowered_calls import is_lowered, unsupported_error
from gossamer_lower.statements.rebuild import map_stmts, with_bodies, with_body


def lower_calls_in(function: Function, instructions: Collection[str]) -> Function:
    """Return the function with these calls replaced by arithmetic in lets before each statement."""
    lowerer = _MathLowerer(namer_of(function), instructions)
    return with_body(function, lowerer.body(function.body))


class _MathLowerer:
    """Rewrites the statements of one function."""

    def __init__(self, namer: Namer, instructions: Collection[str]) -> None:
        self._namer = namer
        self._instructions = instructions

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return map_stmts(body, self._stmt)

    # Other statements: calls in them are computed before; refused if evaluated again.
    # Other expressions: stay; only calls and divisions of floats are lowered.
    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        # Most statements have no call, and a search for one is much faster than rewriting them.
        nodes = collect((Binary, Call), *effects_of(stmt).evaluates)
        if not any(is_lowered(node, self._instructions) for node in nodes):
            return (with_bodies(stmt, self.body),)
        match stmt:
            case While():
                return self._while(stmt)
            case Store():
                return self._store(stmt)
        again = while_body(stmt)
        if again is not None:
            where = f"is called in the condition of a '{type(stmt).__name__}'"
            self._require_none(again.condition, where)
        weight = getattr(stmt, "weight", None)
        self._require_none(weight, "is called in the weight of a parallel loop")
        bodies = {name: self.body(getattr(stmt, name)) for name in body_fields(type(stmt))}
        # Load balancing evaluates the weight where no statement of the loop runs,
        # so it may contain no call.
        others = [name for name in FIELDS[type(stmt)] if name not in (*bodies, "weight")]
        return self._with_lowered_calls(stmt, others, **bodies)

    def _with_lowered_calls(
        self, stmt: Stmt, fields: Iterable[str], **changed: object
    ) -> tuple[Stmt, ...]:
        """Return the statement after those that compute the calls in these fields."""
        calls = CallLowerer(self._namer, self._instructions)
        for name in fields:
            value: Any = getattr(stmt, name)
            if isinstance(value, tuple):
                changed[name] = tuple(calls.any(item) for item in value)
            elif isinstance(value, Buffer):
                changed[name] = map_children(value, calls.expr)
            else:
                changed[name] = calls.any(value)
        return (*calls.stmts, replace(stmt, **changed))

    def _store(self, stmt: Store) -> tuple[Stmt, ...]:
        """Return a store. If its predicate is false, its other operands are not evaluated."""
        calls = CallLowerer(self._namer, self._instructions)
        predicate = None if stmt.predicate is None else calls.expr(stmt.predicate)
        # A false predicate protects what the operands read.
        inside = calls if predicate is None else calls.under(predicate)
        indices = tuple(inside.expr(index) for index in stmt.indices)
        stored = replace(stmt, indices=indices, value=inside.expr(stmt.value), predicate=predicate)
        return (*calls.stmts, stored)

    def _while(self, stmt: While) -> tuple[Stmt, ...]:
        """Return a while loop. A condition with calls is computed before it and after each iteration."""
        calls = CallLowerer(self._namer, self._instructions)
        condition = calls.expr(stmt.condition)
        body = self.body(stmt.body)
        # Without calls the condition stays an expression, which LLVM handles better than a flag in memory.
        if not calls.stmts:
            return (While(condition, body),)
        flag = Buffer(self._namer.fresh("goes_on"), (ONE,), "bool", scope="local")
        # Computed anew: the values of the first test are not those after an iteration.
        again = CallLowerer(self._namer, self._instructions)
        test = again.expr(stmt.condition)
        first = Store(flag.name, (ZERO,), condition)
        next_ = Store(flag.name, (ZERO,), test)
        loop = While(Load(flag.name, (ZERO,), "bool"), (*body, *again.stmts, next_))
        return (Allocate(flag), *calls.stmts, first, loop)

    def _require_none(self, expr: Expr | None, where: str) -> None:
        nodes = () if expr is None else walk(expr)
        for node in nodes:
            if is_lowered(node, self._instructions):
                name = node.function if isinstance(node, Call) else "//"
                raise unsupported_error(name, where)
