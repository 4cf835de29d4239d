"""Syntax trees of sources. Many tests search all files: each is parsed once in a process."""

from __future__ import annotations

import ast
from functools import cache


@cache
def tree_of(text: str) -> ast.Module:
    """Return the tree of a source, which callers must not change."""
    return ast.parse(text)


@cache
def nodes_of(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Return all nodes of a tree, as `ast.walk` yields them."""
    return tuple(ast.walk(tree))
