"""Helpers that rebuild statement bodies and preserve object identity if nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from gossamer_ir.analysis.proofs.program_point import is_invariant
from gossamer_ir.core.build import index_var
from gossamer_ir.nodes import For, Function, If, Let, Stmt, While
from gossamer_ir.traversal.fields import body_fields
from gossamer_ir.traversal.names import Namer

Stmts: TypeAlias = tuple[Stmt, ...]

S = TypeVar("S", bound=For | While | Function)
T = TypeVar("T", bound=Stmt | Function)


def with_bodies(stmt: Stmt, change: Callable[[Stmts], Stmts]) -> Stmt:
    """Return a statement with `change` applied to each of its bodies; the same object if none changed.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Store
    >>> loop = For("i", ZERO, ONE, (Store("Y", (ZERO,), ONE),))
    >>> with_bodies(loop, lambda body: body * 2) == replace(loop, body=loop.body * 2)
    True
    >>> with_bodies(loop, tuple) is loop
    True
    """
    fields = body_fields(type(stmt))
    return replace_bodies(stmt, {field: change(getattr(stmt, field)) for field in fields})


def replace_bodies(stmt: T, bodies: Mapping[str, Stmts]) -> T:
    """Return a statement with the bodies in some fields replaced; the same object if they contain the same
    statements."""
    changed = {
        field: new
        for field, new in bodies.items()
        if reuse_if_same(old := getattr(stmt, field), new) is not old
    }
    return replace(stmt, **changed) if changed else stmt


def with_branches(stmt: If, then_body: Stmts, else_body: Stmts) -> If:
    """Return an `If` with these bodies; the same object if they contain the same statements."""
    return replace_bodies(stmt, {"then_body": then_body, "else_body": else_body})


def with_body(node: S, body: Stmts) -> S:
    """Return a loop or function with this body; the same object if it contains the same statements."""
    return replace_bodies(node, {"body": body})


def map_stmts(body: Stmts, change: Callable[[Stmt], Iterable[Stmt]]) -> Stmts:
    """Return the body with each statement replaced by what `change` returns for it."""
    return reuse_if_same(body, tuple([new for stmt in body for new in change(stmt)]))


def with_hoisted_start(loop: For, function: Function, namer: Namer) -> tuple[tuple[Let, ...], For]:
    """Return the loop with an invariant start, and the let that computes it before, if needed.

    Copies of the body, and vector code for it, evaluate the start again, after the body may have changed
    what it reads.
    """
    # Nearly always: then no let is needed, and the start stays visible to later proofs.
    if is_invariant(loop.start, loop.body, function):
        return (), loop
    start = index_var(namer.fresh(f"{loop.var}_start"))
    return (Let(start, loop.start),), replace(loop, start=start)


def reuse_if_same(old: Stmts, new: Stmts) -> Stmts:
    """Return the old body if the new one contains the same statements, else the new one."""
    return old if len(old) == len(new) and all(map(is_, old, new)) else new
