"""Walking and rewriting of nodes, generic over the fields of each node.

A rewriter returns the same object where nothing changed, so that `is` tells.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from gossamer_ir.nodes import Expr, Node, Var

N = TypeVar("N", bound=Node)


_LEAF_TYPES = re.compile(
    r"(str|int|bool|None|Scope|StageName|ThreadTag|ReduceOp|UnaryOp|BinaryOp|CompareOp|Annotations"
    r"|Literal\[.*\]|tuple\[str, \.\.\.\])( \| None)?"
)


@cache
def _fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields that may hold nodes, in order."""
    types = {
        name: text for base in reversed(kind.__mro__) for name, text in _declared(base).items()
    }
    return tuple(
        name for name in kind.__struct_fields__ if _LEAF_TYPES.fullmatch(types[name]) is None
    )


def _declared(kind: type) -> dict[str, str]:
    return {name: str(text) for name, text in inspect.get_annotations(kind).items()}


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the fields."""
    return iter(_children(node))


def _children(node: Node) -> list[Node]:
    found: list[Node] = []
    for name in _fields(type(node)):
        value = getattr(node, name)
        if type(value) is tuple:
            found += value
        elif value is not None:
            found.append(value)
    return found


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += reversed(_children(current))


def map_children(node: N, function: Callable[[Any], Any]) -> N:
    """The node with function applied to each node directly below it.

    A function may return a tuple for an item of a tuple field (a statement that became several, or
    none); it is spliced in.
    """
    changed: dict[str, Any] = {}
    for name in _fields(type(node)):
        value = getattr(node, name)
        if value is None:
            continue
        new = _map_tuple(value, function) if type(value) is tuple else function(value)
        if new is not value:
            changed[name] = new
    return msgspec.structs.replace(node, **changed) if changed else node


def _map_tuple(items: tuple[Any, ...], function: Callable[[Any], Any]) -> tuple[Any, ...]:
    result: list[Any] = []
    is_same = True
    for item in items:
        new = function(item)
        is_same = is_same and new is item
        if type(new) is tuple:
            result.extend(new)
        else:
            result.append(new)
    return items if is_same else tuple(result)


def rewrite(node: Any, rule: Callable[[Any], Any | None]) -> Any:
    """Applies a rule bottom-up; the rule returns None for "does not apply", a node, or (for a
    statement) a tuple of statements."""
    inner = map_children(node, lambda child: rewrite(child, rule))
    replaced = rule(inner)
    return inner if replaced is None else replaced


def rewrite_body(body: tuple[Any, ...], rule: Callable[[Any], Any | None]) -> tuple[Any, ...]:
    """`rewrite` over a tuple of statements."""
    return _map_tuple(body, lambda item: rewrite(item, rule))


def substitute(node: Any, values: Mapping[str, Expr]) -> Any:
    """Replaces variables by name. Names are unique in a function, so nothing is captured."""

    def rule(inner: Any) -> Any | None:
        return values.get(inner.name) if isinstance(inner, Var) else None

    return rewrite(node, rule) if values else node


def substitute_body(body: tuple[Any, ...], values: Mapping[str, Expr]) -> tuple[Any, ...]:
    """`substitute` over a tuple of statements."""
    return _map_tuple(body, lambda item: substitute(item, values)) if values else body


def free_vars(node: Node) -> frozenset[str]:
    """The names of all variables that occur in an expression."""
    return frozenset(found.name for found in walk(node) if isinstance(found, Var))
