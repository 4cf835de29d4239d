"""Lets above blocks are replaced by their values, so that bindings mention loops directly."""

from __future__ import annotations

import msgspec

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Block, For, If, Let, Load, Stmt, Store, While
from gossamer_ir.walk import statements, substitute_body, walk


def inline_lets(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements without lets that stand above a block with `init`."""
    written = {stmt.buffer for stmt in statements(body) if isinstance(stmt, Store)}
    return _inlined(body, written)


def _inlined(body: tuple[Stmt, ...], written: set[str]) -> tuple[Stmt, ...]:
    for at, stmt in enumerate(body):
        rest = body[at + 1 :]
        if isinstance(stmt, Let) and any(_has_init(found) for found in rest):
            _require_stable(stmt, written)
            return (
                *body[:at],
                *_inlined(substitute_body(rest, {stmt.var.name: stmt.value}), written),
            )
    return tuple(_inside(stmt, written) for stmt in body)


def _inside(stmt: Stmt, written: set[str]) -> Stmt:
    match stmt:
        case For() | While() | Block() if _has_init(stmt):
            return msgspec.structs.replace(stmt, body=_inlined(stmt.body, written))
        case If() if _has_init(stmt):
            then_body, else_body = (
                _inlined(stmt.then_body, written),
                _inlined(stmt.else_body, written),
            )
            return If(stmt.condition, then_body, else_body)
    return stmt


def _has_init(stmt: Stmt) -> bool:
    return any(isinstance(found, Block) and found.init for found in statements((stmt,)))


def _require_stable(let: Let, written: set[str]) -> None:
    for node in walk(let.value):
        if isinstance(node, Load) and node.buffer in written:
            raise UnsupportedError(
                "lower.let_above_block",
                f"The let {let.var.name} stands above a block with init and reads {node.buffer}, "
                "which the function writes.",
                hint="Use the value in place of the let.",
            )
