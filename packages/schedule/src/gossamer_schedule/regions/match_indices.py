"""Matching of index expressions against patterns with free variables."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from gossamer_ir.nodes import Expr, Node, Var


def match_all(
    patterns: Sequence[Expr], exprs: Sequence[Expr], *, free: Set[str]
) -> dict[str, Expr] | None:
    """Return the values of the free variables at which each pattern equals its expression, else None.

    >>> from gossamer_ir.core.build import add, index, index_var
    >>> k, position = index_var("k"), add(index_var("p"), index_var("vj"))
    >>> match_all((position,), (add(index_var("p"), add(k, index(4))),), free={"vj"}) == {
    ...     "vj": add(k, index(4))
    ... }
    True
    >>> match_all((position,), (k,), free={"vj"})
    """
    bindings: dict[str, Expr] = {}
    is_match = len(patterns) == len(exprs) and all(
        _matches(pattern, expr, free, bindings)
        for pattern, expr in zip(patterns, exprs, strict=True)
    )
    return bindings if is_match else None


def _matches(pattern: Any, expr: Any, free: Set[str], bindings: dict[str, Expr]) -> bool:
    """Return whether a pattern matches, and add the values of its free variables to `bindings`."""
    if isinstance(pattern, Var) and pattern.name in free:
        return bool(bindings.setdefault(pattern.name, expr) == expr)
    if type(pattern) is not type(expr):
        return False
    if isinstance(pattern, tuple):
        return len(pattern) == len(expr) and all(
            _matches(part, other, free, bindings) for part, other in zip(pattern, expr, strict=True)
        )
    if isinstance(pattern, Node):
        return all(
            _matches(getattr(pattern, name), getattr(expr, name), free, bindings)
            for name in pattern.__struct_fields__
        )
    return bool(pattern == expr)
