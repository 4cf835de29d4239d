"""Walking Python's syntax trees, several times faster than `ast` does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_LEAVES = frozenset({"ctx", "op", "ops"})
"""Fields whose nodes say all with their type."""


def below(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below, without operators and contexts.

    >>> [type(found).__name__ for found in below(ast.parse("f(x, 1) + y").body[0].value)]
    ['Call', 'Name']
    """
    found: list[ast.AST] = []
    for name in node._fields:
        value = None if name in _LEAVES else getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, without operators and contexts."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += below(current)
