"""Substitution of expressions for variables.

Names are unique in a function, so no variable can be captured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer_ir.nodes import EXPRS, Expr, Node, Stmt, Var
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import map_children, rewrite_body
from gossamer_ir.traversal.statement_queries import values_bound

_EXPRS = frozenset(EXPRS)


def substitute(node: Node, values: Mapping[str, Expr]) -> Any:
    """Replace variables by name.

    >>> from gossamer_ir.core.build import ONE, add, index_var
    >>> substitute(add(index_var("i"), ONE), {"i": index_var("j")}) == add(index_var("j"), ONE)
    True
    """

    def visit(current: Any) -> Any:
        if type(current) is Var:
            return values.get(current.name, current)
        return map_children(current, visit)

    return visit(node) if values and not _is_without(node, values) else node


def substitute_body(body: tuple[Any, ...], values: Mapping[str, Expr]) -> tuple[Any, ...]:
    """Apply `substitute` to a tuple of statements."""

    def rule(node: Node) -> Any | None:
        return values.get(node.name) if type(node) is Var else None

    return rewrite_body(body, rule) if values else body


def resolve(node: Node, values: Mapping[str, Expr]) -> Any:
    """Apply `substitute`, also to the replacements, until none of the variables is left.

    >>> from gossamer_ir.core.build import ONE, add, index_var
    >>> i, j, n = map(index_var, "ijn")
    >>> resolve(i, {"i": add(j, ONE), "j": n}) == add(n, ONE)
    True
    """

    def visit(current: Any) -> Any:
        if type(current) is Var:
            value = values.get(current.name)
            # Values may use other variables. This ends because a variable is bound after those that its
            # value uses. Most values are resolved already, and are not visited.
            return current if value is None else resolve(value, values)
        return current if type(current) in LEAVES else map_children(current, visit)

    if type(node) in LEAVES:
        return visit(node)
    return visit(node) if values and not _is_without(node, values) else node


def substitute_subexprs(node: Expr, replacements: Mapping[Expr, Expr]) -> Expr:
    """Return an expression with some of its subexpressions replaced.

    >>> from gossamer_ir.core.build import ONE, add, index_var
    >>> i, j = index_var("i"), index_var("j")
    >>> substitute_subexprs(add(add(i, ONE), i), {add(i, ONE): j}) == add(j, i)
    True
    """
    if node in replacements:
        return replacements[node]
    return map_children(node, lambda child: substitute_subexprs(child, replacements))


def resolved_values(stmt: Stmt, values: Mapping[str, Expr]) -> dict[str, Expr]:
    """Return the values that a let or a block gives its variables, in terms of variables without a value.

    >>> from gossamer_ir.core.build import add, index_var
    >>> from gossamer_ir.nodes import Let
    >>> i, j, n = map(index_var, "ijn")
    >>> resolved_values(Let(i, add(j, j)), {"j": n}) == {"i": add(n, n)}
    True
    """
    return {var.name: resolve(value, values) for var, value in values_bound(stmt)}


def _is_without(node: Node, values: Mapping[str, Expr]) -> bool:
    """Return whether a node is an expression (whose free variables are cached) without any of the
    variables."""
    return type(node) in _EXPRS and free_vars(node).isdisjoint(values)
