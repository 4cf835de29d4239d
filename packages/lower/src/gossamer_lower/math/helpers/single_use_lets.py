"""Inlines lets that are used once."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.nodes import Expr, If, Let, Load, Stmt, Var, While
from gossamer_ir.traversal.rewrite import map_children, rewrite
from gossamer_ir.traversal.walk import contains, walk

_DEEPEST = 16
"""The maximum depth of expressions into which lets are inlined."""


def with_single_uses_inlined(statements: list[Stmt], *, keep: Expr) -> list[Stmt]:
    """Return the statements with lets that are used once inlined."""
    uses: dict[str, int] = {}
    for stmt in statements:
        for node in walk(stmt):
            if isinstance(node, Var):
                uses[node.name] = uses.get(node.name, 0) + 1
    return _SingleUseInliner(uses).body(statements, {keep.name} if isinstance(keep, Var) else set())


class _SingleUseInliner:
    def __init__(self, uses: dict[str, int]) -> None:
        self._uses = uses
        self._values: dict[str, tuple[Expr, int]] = {}

    def body(self, statements: Iterable[Stmt], kept: set[str]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in statements:
            if isinstance(stmt, While):
                result.append(While(stmt.condition, tuple(self.body(stmt.body, set()))))
                continue
            if isinstance(stmt, If):
                body = tuple(self.body(stmt.then_body, set()))
                result.append(If(self._expr(stmt.condition)[0], body))
                continue
            if not isinstance(stmt, Let):
                result.append(map_children(stmt, lambda child: self._expr(child)[0]))
                continue
            value, depth = self._expr(stmt.value)
            # A load is not moved: a store in between may change its value.
            is_free = not contains(Load, value)
            name = stmt.var.name
            is_single = self._uses.get(name) == 2 and name not in kept
            if is_single and is_free and depth < _DEEPEST:
                self._values[name] = (value, depth)
            else:
                result.append(Let(stmt.var, value))
        return result

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
