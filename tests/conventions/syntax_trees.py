"""Syntax trees of sources. Many tests search all files: each is parsed once in a process."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any


@cache
def tree_of(text: str) -> ast.Module:
    """Return the tree of a source, which callers must not change."""
    _collect_garbage()
    tree = ast.parse(text)
    _exempt_from_collection()
    return tree


def nodes_of(
    tree: ast.AST, first_type: type[ast.AST], *other_types: type[ast.AST]
) -> Iterator[Any]:
    """Yield the nodes of a tree that have one of some types: type by type, as `ast.walk` yields them."""
    by_type = _nodes_by_type(tree)
    for kind in (first_type, *other_types):
        yield from by_type.get(kind, ())


@cache
def _nodes_by_type(tree: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    """Return the nodes of a tree by type: most searches are for few of them."""
    by_type: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    for node in ast.walk(tree):
        by_type[type(node)].append(node)
    _exempt_from_collection()
    return dict(by_type)


@cache
def _collect_garbage() -> None:
    """Collect the garbage of earlier tests, once, so that its finalizers run."""
    gc.collect()


def _exempt_from_collection() -> None:
    """Let the garbage collector skip all objects that there are.

    The trees have two million nodes, which live until the process ends; a search takes a third of a second.
    """
    gc.freeze()
