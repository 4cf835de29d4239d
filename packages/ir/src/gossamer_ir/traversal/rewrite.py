"""Rewriting of nodes, generic over the fields of each type of node.

A rewriter returns the same object if nothing changed, so that callers can compare with `is`, and caches
that are keyed by identity stay valid.

Results have the type `Any`: a rule may replace a node by one of another type, or by several statements. Only
the caller knows what its rule leaves, and annotates that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from gossamer_ir.nodes import EXPRS, Node
from gossamer_ir.traversal.fields import FIELDS

N = TypeVar("N", bound=Node)

_EXPRS = frozenset(EXPRS)


def map_children(node: N, function: Callable[[Any], Any]) -> N:
    """Return the node with a function applied to each of its direct children.

    For an item of a tuple field the function may return a tuple (a statement that became several, or
    none), which is spliced in.

    >>> from gossamer_ir.core.build import ONE, ZERO, add, index_var
    >>> total = add(index_var("i"), ONE)
    >>> map_children(total, lambda child: ZERO if child == ONE else child).rhs == ZERO
    True
    >>> map_children(total, lambda child: child) is total
    True
    """
    names = FIELDS[type(node)]
    if not names:
        return node
    changed: dict[str, Any] = {}
    for name in names:
        value = getattr(node, name)
        if value is None:
            continue
        new = _map_tuple(value, function) if type(value) is tuple else function(value)
        # Identity, not equality: comparing deep nodes would cost as much as rewriting them.
        if new is not value:
            changed[name] = new
    return replace(node, **changed) if changed else node


def with_children(node: N, new: Iterable[Any]) -> N:
    """Return the node with other direct children, in the order of `children`.

    >>> from gossamer_ir.core.build import ONE, ZERO, add, index_var
    >>> with_children(add(index_var("i"), ONE), [index_var("j"), ZERO]).rhs == ZERO
    True
    """
    following = iter(new)
    return map_children(node, lambda _: next(following))


def _map_tuple(items: tuple[Node, ...], function: Callable[[Any], Any]) -> tuple[Any, ...]:
    if not items:
        return items
    result: list[Any] = []
    is_same = True
    for item in items:
        new = function(item)
        is_same = is_same and new is item
        if type(new) is tuple:
            result += new
        else:
            result.append(new)
    return items if is_same else tuple(result)


def rewrite(node: Node, rule: Callable[[Any], Any | None], *, leaves: bool = True) -> Any:
    """Apply a rule bottom-up.

    The rule returns None for "does not apply", a node, or (for a statement) a tuple of statements. It is
    called once for an expression object that occurs several times, and for nodes without children
    (variables, constants) only with `leaves`.

    >>> from gossamer_ir.core.build import add, index_var, mul
    >>> from gossamer_ir.nodes import Binary, Var
    >>> i, j = index_var("i"), index_var("j")
    >>> rewrite(mul(i, i), lambda node: j if node == i else None) == mul(j, j)
    True
    """
    return _Rewriter(rule, leaves=leaves).visit(node)


def rewrite_body(
    body: tuple[Any, ...], rule: Callable[[Any], Any | None], *, leaves: bool = True
) -> tuple[Any, ...]:
    """Apply `rewrite` to a tuple of statements."""
    return _Rewriter(rule, leaves=leaves).visit_all(body)


class _Rewriter:
    """Applies a rule to nodes. Results are cached by `id`, which is safe because all nodes outlive it."""

    def __init__(self, rule: Callable[[Any], Any | None], *, leaves: bool) -> None:
        self._rule = rule
        self._leaves = leaves
        self._done: dict[int, Any] = {}

    def visit(self, current: Any) -> Any:
        kind = type(current)
        names = FIELDS[kind]
        if not names:
            replaced = self._rule(current) if self._leaves else None
            return current if replaced is None else replaced
        is_expr = kind in _EXPRS
        if is_expr:
            key = id(current)
            if key in self._done:
                return self._done[key]
        # `map_children` inlined, since rewriting spends most of its time here.
        changed: dict[str, Any] = {}
        for name in names:
            below = getattr(current, name)
            if type(below) is tuple:
                new = self.visit_all(below) if below else below
            elif below is None:
                continue
            elif FIELDS[type(below)]:
                new = self.visit(below)
            elif self._leaves:
                replaced = self._rule(below)
                if replaced is None:
                    continue
                new = replaced
            else:
                continue
            if new is not below:
                changed[name] = new
        inner = replace(current, **changed) if changed else current
        replaced = self._rule(inner)
        result = inner if replaced is None else replaced
        if is_expr:
            self._done[key] = result
        return result

    def visit_all(self, items: tuple[Node, ...]) -> tuple[Any, ...]:
        """Rewrite items as `_map_tuple` does, which is inlined here."""
        result: list[Any] = []
        is_same = True
        for item in items:
            if FIELDS[type(item)]:
                new = self.visit(item)
            else:
                new = self._rule(item) if self._leaves else item
                if new is None:
                    new = item
            is_same = is_same and new is item
            if type(new) is tuple:
                result += new
            else:
                result.append(new)
        return items if is_same else tuple(result)
