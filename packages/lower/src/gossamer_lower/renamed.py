"""Copies of statements need names of their own for what they bind."""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer_ir.names import Namer
from gossamer_ir.nodes import (
    Allocate,
    For,
    Guard,
    If,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
    Var,
    While,
)  # fmt: skip
from gossamer_ir.walk import map_children


def renamed(body: tuple[Stmt, ...], namer: Namer) -> tuple[Stmt, ...]:
    """The body with a fresh name for everything that it binds."""
    names: dict[str, str] = {}
    _collect(body, names, namer)
    return tuple(_with_names(stmt, names) for stmt in body) if names else body


def _collect(body: tuple[Any, ...], names: dict[str, str], namer: Namer) -> None:
    for stmt in body:
        match stmt:
            case For():
                names[stmt.var] = namer.fresh(stmt.var)
                _collect(stmt.body, names, namer)
            case While():
                _collect(stmt.body, names, namer)
            case If():
                _collect((*stmt.then_body, *stmt.else_body), names, namer)
            case Let():
                names[stmt.var.name] = namer.fresh(stmt.var.name)
            case Allocate():
                names[stmt.buffer.name] = namer.fresh(stmt.buffer.name)


def _with_names(node: Any, names: dict[str, str]) -> Any:
    inner = map_children(node, lambda child: _with_names(child, names))
    match inner:
        case Var() if inner.name in names:
            return Var(names[inner.name], inner.dtype)
        case For() if inner.var in names:
            return msgspec.structs.replace(inner, var=names[inner.var])
        case Load() | Store() | Prefetch() | Guard() if inner.buffer in names:
            return msgspec.structs.replace(inner, buffer=names[inner.buffer])
        case Allocate() if inner.buffer.name in names:
            renamed = msgspec.structs.replace(inner.buffer, name=names[inner.buffer.name])
            return Allocate(renamed)
    return inner
