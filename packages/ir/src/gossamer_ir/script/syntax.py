"""Walks Python's syntax trees several times faster than `ast.walk`, by skipping leaf fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

_LEAVES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment"})
"""Fields with strings, or with nodes that have no children, such as operators."""


@cache
def _inner(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields that may contain further nodes."""
    return tuple(name for name in fields if name not in _LEAVES)


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """Return the child nodes, without operators and contexts.

    >>> [type(node).__name__ for node in child_nodes(ast.parse("f(x, 1) + y").body[0].value)]
    ['Call', 'Name']
    """
    children: list[ast.AST] = []
    for name in _inner(node._fields):
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            children.append(value)
        elif isinstance(value, list):
            children += [item for item in value if isinstance(item, ast.AST)]
    return children


def syntax_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and all its descendants, without operators and contexts."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += child_nodes(current)
