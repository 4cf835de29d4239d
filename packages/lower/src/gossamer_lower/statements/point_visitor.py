"""The base of passes that use the conditions that hold at each statement."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.nodes import For, Function, If, Stmt
from gossamer_ir.traversal.names import namer_of
from gossamer_lower.statements.rebuild import (
    Body,
    map_statements,
    with_bodies,
    with_body,
    with_sides,
)


class PointVisitor:
    """Rewrites the statements of one function in order; `point` is the program point before the statement.

    A pass overrides `statement`, and calls `inside` for the statements whose bodies it visits.

    >>> from gossamer_testkit.examples import program
    >>> class WithoutProvedChoices(PointVisitor):
    ...     def statement(self, stmt):
    ...         is_choice = isinstance(stmt, If)
    ...         if is_choice and self.point.proves(stmt.condition):
    ...             return self.body(stmt.then_body)
    ...         return (self.inside(stmt),)
    >>> (function,) = program('''
    ... for i in T.serial(n):
    ...     if i < n:
    ...         Y[i] = X[i]
    ... ''').functions
    >>> (loop,) = WithoutProvedChoices(function).body(function.body)
    >>> type(loop.body[0]).__name__
    'Store'
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.namer = namer_of(function)
        self.point = ProgramPoint(function)

    def body(self, body: Body) -> Body:
        """Return the statements of a body, each visited at its point."""
        with self.point.scope():
            return map_statements(body, self._visited)

    def _visited(self, stmt: Stmt) -> tuple[Stmt, ...]:
        new = tuple(self.statement(stmt))
        self.point.after(stmt)
        return new

    def statement(self, stmt: Stmt) -> Iterable[Stmt]:
        """Return the statements that replace one."""
        return (self.inside(stmt),)

    def inside(self, stmt: Stmt) -> Stmt:
        """Return a statement with its bodies visited, each at the point where it begins."""
        match stmt:
            case For():
                return self.inside_loop(stmt)
            case If():
                with self.point.under(stmt.condition, stmt.then_body):
                    then_body = self.body(stmt.then_body)
                return with_sides(stmt, then_body, self.body(stmt.else_body))
        return with_bodies(stmt, self.body)

    def inside_loop(self, loop: For) -> For:
        """Return a loop with its body visited."""
        with self.point.inside(loop):
            body = self.body(loop.body)
        return with_body(loop, body)
