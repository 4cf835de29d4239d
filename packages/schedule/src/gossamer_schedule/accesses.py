"""Which elements the statements below a loop touch, as index forms over loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gossamer_ir.nodes import (
    Allocate,
    Block,
    Combine,
    Expr,
    For,
    If,
    Iteration,
    Let,
    Load,
    Search,
    Stmt,
    Store,
    While,
)
from gossamer_ir.walk import walk
from gossamer_schedule.linear import Form, Values, form_of
from gossamer_schedule.sites import Site, statements


class Access(msgspec.Struct, frozen=True):
    """One load or store; an index is None where it is a whole range (a search)."""

    buffer: str
    indices: tuple[Form | None, ...]
    is_store: bool


def values_at(site: Site) -> dict[str, Expr]:
    """What block variables and lets stand for at a site."""
    values: dict[str, Expr] = {}
    for parent, name, index in site.path:
        if isinstance(parent, Block):
            values.update({found.var: found.value for found in parent.iters})
        for found in getattr(parent, name)[:index]:
            if isinstance(found, Let):
                values[found.var.name] = found.value
    return values


def written(body: tuple[Stmt, ...]) -> set[str]:
    """The buffers that a body stores to, except those it allocates."""
    names, own = set(), set()
    for found in statements(body):
        if isinstance(found, Store):
            names.add(found.buffer)
        elif isinstance(found, Allocate):
            own.add(found.buffer.name)
        elif isinstance(found, (Block, Iteration)) and found.init:
            names |= written(found.init)
    return names - own


def mentioned(body: Iterable[Any]) -> set[str]:
    """The buffers that statements or expressions touch in any way."""
    return {
        found.buffer
        for top in body
        for found in walk(top)
        if isinstance(found, (Load, Store, Search))
    }


def accesses(
    body: tuple[Stmt, ...],
    buffers: set[str],
    *,
    values: Values,
    loops: Mapping[str, For],
) -> Iterator[Access]:
    """Every access of some buffers in a body, the order of stores being program order."""
    values = dict(values)
    for statement in body:
        match statement:
            case Let():
                values[statement.var.name] = statement.value
            case Block():
                values.update({found.var: found.value for found in statement.iters})
                yield from accesses(statement.init, buffers, values=values, loops=loops)
        for part in parts_of(statement):
            yield from _in_expression(part, buffers, values=values, loops=loops)
        if isinstance(statement, Store) and statement.buffer in buffers:
            indices = tuple(form_of(at, values, loops=loops) for at in statement.indices)
            yield Access(statement.buffer, indices, is_store=True)
        for inner in _bodies(statement):
            yield from accesses(inner, buffers, values=values, loops=loops)


def _bodies(statement: Any) -> tuple[tuple[Stmt, ...], ...]:
    match statement:
        case For() | Block() | While():
            return (statement.body,)
        case If():
            return (statement.then_body, statement.else_body)
        case Combine():
            return (statement.stores,)
    return ()


def parts_of(statement: Any) -> tuple[Expr, ...]:
    """The expressions that stand in a statement itself."""
    match statement:
        case Store():
            parts = (*statement.indices, statement.value, statement.predicate)
        case For():
            parts = (statement.start, statement.extent, statement.weight)
        case Block():
            parts = (*(found.value for found in statement.iters), statement.predicate)
        case Let():
            parts = (statement.value,)
        case If() | While():
            parts = (statement.condition,)
        case _:
            parts = ()
    return tuple(part for part in parts if part is not None)


def _in_expression(
    expr: Expr, buffers: set[str], *, values: Values, loops: Mapping[str, For]
) -> Iterator[Access]:
    for found in walk(expr):
        if isinstance(found, Load) and found.buffer in buffers:
            indices = tuple(form_of(at, values, loops=loops) for at in found.indices)
            yield Access(found.buffer, indices, is_store=False)
        elif isinstance(found, Search) and found.buffer in buffers:
            prefix = tuple(form_of(at, values, loops=loops) for at in found.prefix)
            yield Access(found.buffer, (*prefix, None), is_store=False)
