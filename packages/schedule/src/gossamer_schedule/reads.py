"""The loads of one buffer in a block, each with the condition under which it is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gossamer_ir.build import ZERO, integer_value
from gossamer_ir.nodes import (
    Block,
    Combine,
    Compare,
    Expr,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Node,
    Stmt,
    Unary,
    While,
)
from gossamer_ir.simplify import TRUE
from gossamer_ir.touches import parts_of
from gossamer_ir.walk import children, resolve
from gossamer_schedule.predicates import in_turn

Conditions = tuple[Expr, ...]


class Read(msgspec.Struct, frozen=True):
    """An element that is loaded where the condition holds (None: wherever the block runs), in terms of
    what is bound outside of the block's body."""

    indices: tuple[Expr, ...]
    dtype: str
    condition: Expr | None


def reads_of(block: Block, buffer: str) -> tuple[Read, ...]:
    """Each element of the buffer that the body of a block loads, once."""
    found: dict[tuple[Expr, ...], tuple[str, list[Conditions]]] = {}
    for load, held in _in_body(block.body, buffer, {}, ()):
        _, cases = found.setdefault(load.indices, (load.dtype, []))
        _add(cases, held)
    return tuple(Read(at, dtype, _any_of(cases)) for at, (dtype, cases) in found.items())


def _add(cases: list[Conditions], held: Conditions) -> None:
    """One more case, unless it is a part of another; those that are parts of it are dropped."""
    if any(set(case) <= set(held) for case in cases):
        return
    cases[:] = [case for case in cases if not set(held) <= set(case)]
    cases.append(held)


def _any_of(cases: Iterable[Conditions]) -> Expr | None:
    """Where one of some cases holds; None for everywhere."""
    condition: Expr | None = None
    for case in cases:
        held = in_turn(case)
        if held is None:
            return None
        condition = held if condition is None else IfThenElse(condition, TRUE, held)
    return condition


def _in_body(
    body: tuple[Stmt, ...], buffer: str, values: Mapping[str, Expr], held: Conditions
) -> Iterator[tuple[Load, Conditions]]:
    values = dict(values)
    for statement in body:
        if isinstance(statement, Block):
            values |= {item.var: resolve(item.value, values) for item in statement.iters}
        for part in parts_of(statement):
            yield from _in_expression(resolve(part, values), buffer, held)
        if isinstance(statement, Let):
            values[statement.var.name] = resolve(statement.value, values)
        for inner, condition in _bodies(statement):
            more = () if condition is None else (resolve(condition, values),)
            yield from _in_body(inner, buffer, values, (*held, *more))


def _bodies(statement: Any) -> Iterator[tuple[tuple[Stmt, ...], Expr | None]]:
    match statement:
        case If():
            yield statement.then_body, statement.condition
            yield statement.else_body, Unary("not", statement.condition)
        case For():
            runs = Compare("gt", statement.extent, ZERO)
            yield statement.body, None if (integer_value(statement.extent) or 0) > 0 else runs
        case While():
            yield statement.body, statement.condition
        case Block():
            yield statement.init, None
            yield statement.body, statement.predicate
        case Combine():
            yield statement.stores, None


def _in_expression(expr: Node, buffer: str, held: Conditions) -> Iterator[tuple[Load, Conditions]]:
    match expr:
        case IfThenElse():
            yield from _in_expression(expr.condition, buffer, held)
            yield from _in_expression(expr.if_true, buffer, (*held, expr.condition))
            no = Unary("not", expr.condition)
            yield from _in_expression(expr.if_false, buffer, (*held, no))
        case _:
            if isinstance(expr, Load) and expr.buffer == buffer:
                yield expr, held
            for child in children(expr):
                yield from _in_expression(child, buffer, held)
