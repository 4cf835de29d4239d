"""Inlines lets that are used once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gossamer_ir.core.statement_kinds import is_stmt
from gossamer_ir.nodes import Expr, Let, Load, Stmt, Var
from gossamer_ir.traversal.rewrite import map_children, rewrite
from gossamer_ir.traversal.walk import contains, walk
from gossamer_lower.statements.rebuild import with_bodies

MAX_INLINED_DEPTH = 16
"""The maximum depth of expressions into which lets are inlined."""


def with_single_uses_inlined(stmts: list[Stmt], *, keep: Expr) -> list[Stmt]:
    """Return the statements with lets that are used once inlined."""
    uses: dict[str, int] = {}
    for stmt in stmts:
        for node in walk(stmt):
            if isinstance(node, Var):
                uses[node.name] = uses.get(node.name, 0) + 1
    return _SingleUseInliner(uses).body(stmts, {keep.name} if isinstance(keep, Var) else set())


class _SingleUseInliner:
    def __init__(self, uses: dict[str, int]) -> None:
        self._uses = uses
        self._values: dict[str, tuple[Expr, int]] = {}

    # Other statements: stay, with values in place of variables that are used once.
    def body(self, stmts: Iterable[Stmt], kept: set[str]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            if not isinstance(stmt, Let):
                result.append(self._inside(stmt))
                continue
            value, depth = self._expr(stmt.value)
            # A load is not moved: a store in between may change its value.
            is_free = not contains(Load, value)
            name = stmt.var.name
            is_single = self._uses.get(name) == 2 and name not in kept
            if is_single and is_free and depth < MAX_INLINED_DEPTH:
                self._values[name] = (value, depth)
            else:
                result.append(Let(stmt.var, value))
        return result

    def _inside(self, stmt: Stmt) -> Stmt:
        """Return a statement with lets inlined in its own expressions, and then in each of its bodies."""
        # The values load nothing, so a loop may evaluate them again after its body has run.
        return with_bodies(
            map_children(stmt, self._with_inlined_lets), lambda body: tuple(self.body(body, set()))
        )

    def _with_inlined_lets(self, child: Any) -> Any:
        return child if is_stmt(child) else self._expr(child)[0]

    def _expr(self, node: Expr) -> tuple[Expr, int]:
        deepest = 0

        def visit(inner: Expr) -> Expr | None:
            nonlocal deepest
            if not isinstance(inner, Var) or inner.name not in self._values:
                return None
            value, depth = self._values[inner.name]
            deepest = max(deepest, depth)
            return value

        return rewrite(node, visit), deepest + 1
