"""Syntax trees of sources. Many tests search all files: each is parsed once in a process."""

from __future__ import annotations

import ast
import gc
from functools import cache


@cache
def tree_of(text: str) -> ast.Module:
    """Return the tree of a source, which callers must not change."""
    _collect_garbage()
    tree = ast.parse(text)
    _exempt_from_collection()
    return tree


@cache
def nodes_of(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Return all nodes of a tree, as `ast.walk` yields them."""
    nodes = tuple(ast.walk(tree))
    _exempt_from_collection()
    return nodes


@cache
def _collect_garbage() -> None:
    """Collect the garbage of earlier tests, once, so that its finalizers run."""
    gc.collect()


def _exempt_from_collection() -> None:
    """Let the garbage collector skip all objects that there are.

    The trees have two million nodes, which live until the process ends; a search takes a third of a second.
    """
    gc.freeze()
