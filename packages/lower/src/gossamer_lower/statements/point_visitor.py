"""The base of passes that use the conditions that hold at each statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.statement_kinds import Body, effects_of
from gossamer_ir.nodes import For, Function, Module, Stmt
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_lower.lowering_pass import map_functions
from gossamer_lower.statements.rebuild import Stmts, map_stmts, replace_bodies, with_body

T = TypeVar("T", bound=Stmt)


class PointVisitor:
    """Rewrites the statements of one function in order; `point` is the program point before the statement.

    A pass overrides `stmt`, and calls `inside` for the statements whose bodies it visits. It overrides
    `in_body` or `move_past` if it needs more than the point at a body, or after a statement.

    >>> from gossamer_ir.nodes import If
    >>> from gossamer_testkit.examples import program
    >>> class WithoutProvedChoices(PointVisitor):
    ...     def stmt(self, stmt):
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

    def body(self, body: Stmts) -> Stmts:
        """Return the statements of a body, each visited at its point."""
        with self.point.scope():
            return map_stmts(body, self._visit)

    def _visit(self, stmt: Stmt) -> tuple[Stmt, ...]:
        new = tuple(self.stmt(stmt))
        self.move_past(stmt, new)
        return new

    def stmt(self, stmt: Stmt) -> Iterable[Stmt]:
        """Return the statements that replace one."""
        return (self.inside(stmt),)

    def inside(self, stmt: T) -> T:
        """Return a statement with its bodies visited, each at the point where it begins."""
        visited: dict[str, Stmts] = {}
        for body in effects_of(stmt).bodies:
            with self.in_body(stmt, body):
                visited[body.field] = self.body(body.stmts)
        return replace_bodies(stmt, visited)

    def in_body(self, stmt: Stmt, body: Body) -> AbstractContextManager[None]:
        """Return a context in which the point is where a body of a statement begins."""
        return self.point.in_body(stmt, body)

    def move_past(self, stmt: Stmt, new: Stmts) -> None:
        """Move the point past a statement, which has been replaced by `new`."""
        self.point.move_past(stmt)


def rewrite_annotated(
    module: Module, annotation: str, visitor: Callable[[Function], PointVisitor]
) -> Module:
    """Return the module with each function that has a loop with an annotation rewritten by a visitor."""

    def rewrite(function: Function) -> Function:
        loops = nodes_of_type(function, For)
        if not any(annotation in dict(loop.annotations) for loop in loops):
            return function
        return with_body(function, visitor(function).body(function.body))

    return map_functions(module, rewrite)
