"""The loads of one buffer in a block, each with the condition under which it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses import parts_of
from gossamer_ir.analysis.init_nests import LoopOrCondition, without_loops
from gossamer_ir.arith.simplify import TRUE
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import (
    Allocate,
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
    Store,
    Unary,
    While,
)
from gossamer_ir.traversal.walk import children, resolve
from gossamer_schedule.bounds.predicates import in_turn
from gossamer_schedule.cursor.cursor import BODIES, Cursor
from gossamer_schedule.nests.init_nest import conditions_of_init, left_out

Conditions = tuple[Expr, ...]
Indices = tuple[Expr, ...]


class Read(msgspec.Struct, frozen=True):
    """An element that is loaded where the condition holds (None: wherever the block runs), in terms of
    what is bound outside of the block's body."""

    indices: tuple[Expr, ...]
    dtype: str
    condition: Expr | None


def reads_of(cursor: Cursor, buffer: str) -> tuple[Read, ...]:
    """Each element of the buffer that the body of the block at a cursor loads, once."""
    return _once(_Reading(buffer).body(cursor, "body", {}, _Place((), ())))


def accesses_of(
    cursor: Cursor, buffer: str, dtype: str
) -> tuple[tuple[Read, ...], frozenset[Indices]]:
    """Each element of the buffer that the body of the block at a cursor loads or stores to, once; and the
    indices of those that it stores to."""
    start = _Place((), ())
    stored = list(_Storing(buffer, dtype).body(cursor, "body", {}, start))
    every = chain(_Reading(buffer).body(cursor, "body", {}, start), stored)
    return _once(every), frozenset([found.indices for found, _ in stored])


def evaluated_under(cursor: Cursor, expr: Expr) -> Expr | None:
    """The condition under which the body of the block at a cursor evaluates an expression of the block's
    iterators, but for what the headers of loops and blocks evaluate; None for everywhere."""
    return _any_of([held for _, held in _Looking(expr).body(cursor, "body", {}, _Place((), ()))])


def _once(every: Iterable[tuple[Any, Conditions]]) -> tuple[Read, ...]:
    found: dict[tuple[Expr, ...], tuple[str, list[Conditions]]] = {}
    for load, held in every:
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


class _Place(NamedTuple):
    """What a statement stands in: conditions that hold outside of the block around it, and loops and
    conditions in that block, the outermost first."""

    above: Conditions
    within: tuple[LoopOrCondition, ...]

    def held(self) -> Conditions:
        """What holds where the statement runs."""
        return (*self.above, *(condition for part in self.within for condition in _holding(part)))


class _Reading:
    """The loads of a buffer in what is inside of a block, each with what holds where it is made."""

    def __init__(self, buffer: str) -> None:
        self._buffer = buffer

    def body(
        self, cursor: Cursor, field: str, values: Mapping[str, Expr], around: _Place
    ) -> Iterator[tuple[Any, Conditions]]:
        """The loads in a body of the statement at a cursor."""
        values, held = dict(values), around.held()
        for index, statement in enumerate(getattr(cursor.node, field)):
            below = cursor.down(field, index)
            if isinstance(statement, Block):
                values |= {item.var: resolve(item.value, values) for item in statement.iters}
            yield from self._own(statement, values, held)
            if isinstance(statement, Let):
                values[statement.var.name] = resolve(statement.value, values)
            if isinstance(statement, Block):
                yield from self._init(below, values, around)
            for inner, last in _bodies(statement):
                inside = None if last is None else _resolved(last, values)
                yield from self.body(below, inner, values, _inside(around, statement, inside))

    def _own(
        self, statement: Stmt, values: Mapping[str, Expr], held: Conditions
    ) -> Iterator[tuple[Any, Conditions]]:
        """The loads in a statement itself."""
        for part in parts_of(statement):
            yield from self._expression(resolve(part, values), held)

    def _init(
        self, cursor: Cursor, values: Mapping[str, Expr], around: _Place
    ) -> Iterator[tuple[Any, Conditions]]:
        """What an init reads runs also where loops are empty that only feed the reduction; so do the
        bounds and conditions of the loops that it needs."""
        if not cursor.node.init:
            return
        held = around.above
        own = (_resolved(part, values) for part in conditions_of_init(cursor))
        for part in (*without_loops(around.within, left_out(cursor)), *own):
            for asked in (part.start, part.extent) if isinstance(part, For) else (part,):
                yield from self._expression(asked, held)
            held = (*held, *_holding(part))
        yield from self.body(cursor, "init", values, _Place(held, ()))

    def _is_sought(self, expr: Node) -> bool:
        return isinstance(expr, Load) and expr.buffer == self._buffer

    def _expression(self, expr: Node, held: Conditions) -> Iterator[tuple[Any, Conditions]]:
        match expr:
            case IfThenElse():
                yield from self._expression(expr.condition, held)
                yield from self._expression(expr.if_true, (*held, expr.condition))
                no = Unary("not", expr.condition)
                yield from self._expression(expr.if_false, (*held, no))
            case _:
                if self._is_sought(expr):
                    yield expr, held
                for child in children(expr):
                    yield from self._expression(child, held)


class _Storing(_Reading):
    """The stores to a buffer, each as a load of its element."""

    def __init__(self, buffer: str, dtype: str) -> None:
        super().__init__(buffer)
        self._dtype = dtype

    def _own(
        self, statement: Stmt, values: Mapping[str, Expr], held: Conditions
    ) -> Iterator[tuple[Any, Conditions]]:
        if isinstance(statement, Store) and statement.buffer == self._buffer:
            on = () if statement.predicate is None else (resolve(statement.predicate, values),)
            indices = tuple(resolve(at, values) for at in statement.indices)
            yield Load(self._buffer, indices, self._dtype), (*held, *on)


HEADERS = (Allocate, Block, For)
"""The statements whose own expressions say where others run."""


class _Looking(_Reading):
    """The places where an expression is evaluated, apart from `HEADERS`."""

    def __init__(self, expr: Expr) -> None:
        super().__init__("")
        self._expr = expr

    def _is_sought(self, expr: Node) -> bool:
        return expr == self._expr

    def _own(
        self, statement: Stmt, values: Mapping[str, Expr], held: Conditions
    ) -> Iterator[tuple[Any, Conditions]]:
        if not isinstance(statement, HEADERS):
            yield from super()._own(statement, values, held)


def _inside(around: _Place, statement: Stmt, part: LoopOrCondition | None) -> _Place:
    """What a body of a statement stands in."""
    within = around.within if part is None else (*around.within, part)
    inner = _Place(around.above, within)
    return _Place(inner.held(), ()) if isinstance(statement, Block) else inner


def _resolved(part: LoopOrCondition, values: Mapping[str, Expr]) -> LoopOrCondition:
    """A condition, or the header of a loop, in terms of what is bound outside."""
    header = replace(part, body=()) if isinstance(part, For) else part
    found: LoopOrCondition = resolve(header, values)
    return found


def _holding(part: LoopOrCondition) -> Conditions:
    """What holds in a loop, or under a condition."""
    if not isinstance(part, For):
        return (part,)
    return () if (integer_value(part.extent) or 0) > 0 else (Compare("gt", part.extent, ZERO),)


def _bodies(statement: Any) -> Iterator[tuple[str, LoopOrCondition | None]]:
    """The fields of the bodies of a statement but for an init, with the loop or the condition that they
    stand in."""
    fields = BODIES.get(type(statement))
    return zip(fields, AROUND[type(statement)](statement), strict=True) if fields else iter(())


AROUND: dict[type, Callable[[Any], tuple[LoopOrCondition | None, ...]]] = {
    If: lambda stmt: (stmt.condition, Unary("not", stmt.condition)),
    For: lambda stmt: (stmt,),
    While: lambda stmt: (stmt.condition,),
    Block: lambda stmt: (stmt.predicate,),
    Combine: lambda stmt: (None,),
}
"""What each body of a kind of statement stands in; a test compares the kinds with `BODIES`."""
