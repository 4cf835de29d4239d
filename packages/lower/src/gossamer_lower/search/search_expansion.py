"""The cells in which a search keeps what it knows, and its steps, shared by the ways of searching."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer_ir.arith.simplify import FALSE
from gossamer_ir.core import build
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Compare,
    Expr,
    Function,
    If,
    IfThenElse,
    Let,
    Load,
    Search,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)  # fmt: skip
from gossamer_ir.traversal.effects import all_buffers


def cell(name: str, value: Expr) -> tuple[Stmt, ...]:
    """A local buffer of one element, and what is in it first."""
    return Allocate(Buffer(name, (build.ONE,), "int64", None, "local")), write(name, value)


def read(name: str) -> Load:
    """What is in a cell."""
    return Load(name, (build.ZERO,), "int64")


def write(name: str, value: Expr) -> Store:
    """Puts a value into a cell."""
    return Store(name, (build.ZERO,), value)


def where(condition: Expr, steps: tuple[Stmt, ...], let: Let) -> tuple[Stmt, ...]:
    """The steps of a search that is made where a condition holds, and the let of its result."""
    cells = [part for part in steps if isinstance(part, Allocate)]
    kept = tuple(part for part in steps if not isinstance(part, Allocate))
    value = IfThenElse(condition, let.value, build.ZERO)
    return (*cells, If(condition, kept), Let(let.var, value))


def buffer_dtypes(function: Function) -> dict[str, str]:
    """The dtype of each buffer of a function, also of those it allocates."""
    return {found.name: found.dtype for found in all_buffers(function)}


class SearchCells(msgspec.Struct, frozen=True):
    """One search: `low` holds a position that the result does not come before, `size` how far behind
    it the result may be."""

    search: Search
    low: str
    size: str
    dtypes: dict[str, str]

    def from_scratch(self, *, may_wrap: bool) -> tuple[Stmt, ...]:
        """The whole window. Where the ends of an empty one are so far apart that their difference wraps
        around, it would not look empty."""
        begin, end = self.search.begin, self.search.end
        size = build.sub(end, begin)
        if may_wrap:
            size = Select(Compare("lt", begin, end), size, build.ZERO)
        return (*cell(self.low, begin), *cell(self.size, size))

    def from_cursor(self) -> tuple[Stmt, ...]:
        """Doubles the step from the last result on, or from the begin where that is too far."""
        begin, end = self.search.begin, self.search.end
        low, step = read(self.low), read(self.size)
        is_too_far = Unary("not", self.precedes(build.sub(low, build.ONE)))
        next_low = build.add(low, step)
        is_ahead = IfThenElse(
            Compare("le", next_low, end), self.precedes(build.sub(next_low, build.ONE)), FALSE
        )
        room = Binary("min", build.sub(step, build.ONE), build.sub(end, low))
        return (
            If(Compare("gt", low, begin), (If(is_too_far, (write(self.low, begin),)),)),
            *cell(self.size, build.ONE),
            While(
                is_ahead,
                (write(self.low, next_low), write(self.size, build.mul(step, build.index(2)))),
            ),
            write(self.size, room),
        )

    def from_before(self, steps: int, stop: Var) -> tuple[Stmt, ...]:
        """Steps from the last result on, one by one; what is left after some steps is still open. The
        cell is made before, with the begin of the window where that is a constant, else 0."""
        begin, end = self.search.begin, self.search.end
        low = read(self.low)
        is_ahead = IfThenElse(Compare("lt", low, stop), self.precedes(low), FALSE)
        rest = Select(Compare("eq", low, stop), build.sub(end, low), build.ZERO)
        is_within = build.integer_value(begin) is not None
        return (
            *(() if is_within else (write(self.low, Binary("max", low, begin)),)),
            Let(stop, Binary("min", build.add(low, build.index(steps)), end)),
            While(is_ahead, (write(self.low, build.add(low, build.ONE)),)),
            *cell(self.size, rest),
        )

    def halving(self, middle: Var) -> While:
        """Halves what is left; where its first half precedes the value, goes on behind it."""
        low, size = read(self.low), read(self.size)
        half = Binary("shr", size, build.ONE)
        moved = Select(self.precedes(build.sub(middle, build.ONE)), middle, low)
        body = (
            Let(middle, build.add(low, build.sub(size, half))),
            write(self.low, moved),
            write(self.size, half),
        )
        return While(Compare("gt", size, build.ZERO), body)

    def result(self) -> Expr:
        """The position found; for an exact search -1 where another value stands there."""
        low = read(self.low)
        if self.search.kind != "exact":
            return low
        absent = build.index(-1)
        is_found = Compare("eq", self.element(low), self.search.value)
        is_inside = Compare("lt", low, self.search.end)
        return IfThenElse(is_inside, Select(is_found, low, absent), absent)

    def precedes(self, position: Expr) -> Expr:
        """Whether the result comes behind the element at a position."""
        op: Literal["le", "lt"] = "le" if self.search.kind == "upper" else "lt"
        return Compare(op, self.element(position), self.search.value)

    def element(self, position: Expr) -> Expr:
        dtype = self.dtypes[self.search.buffer]
        element = Load(self.search.buffer, (*self.search.prefix, position), dtype)
        return element if build.dtype_of(self.search.value) == dtype else build.widen(element)
