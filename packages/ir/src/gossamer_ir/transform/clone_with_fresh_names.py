"""Clones statements with fresh names for everything that they bind: names are unique in a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gossamer_ir.nodes import Allocate, Expr, For, ParallelFor, Stmt, Var
from gossamer_ir.traversal.effects import BUFFER_NODES, declared_names
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import statements


def with_fresh_names(
    body: tuple[Stmt, ...], namer: Namer, *, values: Mapping[str, Expr] | None = None
) -> tuple[Stmt, ...]:
    """Return a copy of the body with fresh names for what it binds, and with `values` for free variables.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> (loop,) = with_fresh_names((For("i", ZERO, ONE, ()),), Namer(["i"]))
    >>> loop.var
    'i_1'
    """
    names = _collect(body, namer)
    if not names and not values:
        return body
    given = values or {}
    return rewrite_body(body, lambda node: _copied(node, names, given))


def _collect(body: tuple[Stmt, ...], namer: Namer) -> dict[str, str]:
    return {name: namer.fresh(name) for stmt in statements(body) for name in declared_names(stmt)}


_COUNTING = (For, ParallelFor)


def _copied(node: Any, names: Mapping[str, str], values: Mapping[str, Expr]) -> Any | None:
    kind = type(node)
    if kind is Var:
        name = names.get(node.name)
        return values.get(node.name) if name is None else Var(name, node.dtype)
    if kind in BUFFER_NODES:
        name = names.get(node.buffer)
        return None if name is None else msgspec.structs.replace(node, buffer=name)
    if kind in _COUNTING and node.var in names:
        return msgspec.structs.replace(node, var=names[node.var])
    if kind is Allocate and node.buffer.name in names:
        return Allocate(msgspec.structs.replace(node.buffer, name=names[node.buffer.name]))
    return None
