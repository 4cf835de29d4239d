"""Common subexpression elimination across the copies of an unrolled body.

`A[p + j]` in each of eight vectors becomes one `Let` before the copies, which saves the backend the work of
finding the common subexpression itself.
"""

from __future__ import annotations

from typing import Any

from gossamer_ir.core.expression_kinds import LAZY, dtype_of
from gossamer_ir.nodes import EXPRS, Expr, IfThenElse, Let, Load, Ramp, Stmt, Store, Var
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.walk import collect, contains


def cse_unrolled(
    body: tuple[Stmt, ...], varying: str, *, namer: Namer
) -> tuple[tuple[Let, ...], tuple[Stmt, ...]]:
    """Return the lets for what does not depend on the variable `varying`, and the body that uses them: lets
    of the body, such as a mask, and loads.

    Only if every statement is a store or a let, so that all loads are evaluated unconditionally, and only for
    loads from buffers that the body does not write.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_ir.traversal.names import namer_of
    >>> (function,) = program("for i in T.unroll(4): Y[i] = X[P[n - 1]]").functions
    >>> lets, (store,) = cse_unrolled(function.body[0].body, "i", namer=namer_of(function))
    >>> lets[0].value.buffer, store.value == lets[0].var
    ('X', True)
    """
    if not all(isinstance(stmt, (Let, Store)) for stmt in body):
        return (), body
    hoister = _CommonExprHoister(body, varying, namer)
    new = tuple(hoister.node(stmt) for stmt in body if not hoister.hoists(stmt))
    return hoister.lets, new


class _CommonExprHoister:
    def __init__(self, body: tuple[Stmt, ...], varying: str, namer: Namer) -> None:
        self._varying = {varying, *(stmt.var.name for stmt in body if isinstance(stmt, Let))}
        self._prefix = varying
        self._written = buffers_written(body)
        self._namer = namer
        self._hoisted: list[Let] = []
        self._shared: dict[Expr, Let] = {}

    @property
    def lets(self) -> tuple[Let, ...]:
        """The lets before all copies."""
        return (*self._hoisted, *self._shared.values())

    def hoists(self, stmt: Stmt) -> bool:
        """Move a let before all copies if its value is the same in each."""
        if not isinstance(stmt, Let) or not self._is_same(stmt.value):
            return False
        self._hoisted.append(stmt)
        self._varying.remove(stmt.var.name)
        return True

    def node(self, node: Any) -> Any:
        """Return the node with its largest shared subexpressions replaced by variables."""
        if type(node) in LEAVES or type(node) in LAZY:
            return node
        if type(node) in EXPRS and self._is_shared(node):
            return self._let(node).var
        return map_children(node, self.node)

    def _is_shared(self, expr: Expr) -> bool:
        return not isinstance(expr, Ramp) and contains(Load, expr) and self._is_same(expr)

    def _is_same(self, expr: Expr) -> bool:
        """Return whether an expression can be evaluated before all copies, with the same value."""
        if not self._varying.isdisjoint(free_vars(expr)):
            return False
        is_plain = all(
            load.buffer not in self._written and load.predicate is None
            for load in collect(Load, expr)
        )
        return is_plain and not contains(IfThenElse, expr)

    def _let(self, expr: Expr) -> Let:
        if expr not in self._shared:
            name = self._namer.fresh(f"{self._prefix}_shared")
            self._shared[expr] = Let(Var(name, dtype_of(expr)), expr)
        return self._shared[expr]
