"""The local cells that hold the state of a search, and the steps that all ways of searching share."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer_ir.core.build import ONE, ZERO, add, index, integer_value, mul, sub, widen
from gossamer_ir.core.conditions import short_circuit_and
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import ALLOCATING_STMTS
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
)
from gossamer_ir.traversal.buffer_definitions import all_buffers


def allocated_cell(name: str, value: Expr) -> tuple[Stmt, ...]:
    """Return the statements that allocate a local buffer of one element and initialize it."""
    return Allocate(Buffer(name, (ONE,), "int64", None, "local")), cell_store(name, value)


def cell_value(name: str) -> Load:
    """Return a load of the value of a cell."""
    return Load(name, (ZERO,), "int64")


def cell_store(name: str, value: Expr) -> Store:
    """Return a store of a value to a cell."""
    return Store(name, (ZERO,), value)


def search_under(
    condition: Expr, steps: tuple[Stmt, ...], let: Let, *, otherwise: Expr
) -> tuple[Stmt, ...]:
    """Return the steps of a search under a condition, and the let of its result or of another value."""
    # Allocations stay outside of the `If`: the let after it reads them.
    cells = [part for part in steps if isinstance(part, ALLOCATING_STMTS)]
    kept = tuple(part for part in steps if not isinstance(part, ALLOCATING_STMTS))
    value = IfThenElse(condition, let.value, otherwise)
    return (*cells, If(condition, kept), Let(let.var, value))


def buffer_dtypes(function: Function) -> dict[str, str]:
    """Return the dtype of each buffer of a function, including those that it allocates."""
    return {buffer.name: buffer.dtype for buffer in all_buffers(function)}


class SearchCells(msgspec.Struct, frozen=True):
    """The state of one search: the result lies in [low, low + size], where `low` and `size` are cells."""

    search: Search
    low: str
    size: str
    dtypes: dict[str, str]

    def from_scratch(self, *, may_wrap: bool) -> tuple[Stmt, ...]:
        """Return the statements that start with the whole window. If `may_wrap`, the size of an empty
        window is set to 0: the difference of its ends could overflow and look positive."""
        begin, end = self.search.begin, self.search.end
        size = sub(end, begin)
        if may_wrap:
            size = Select(Compare("lt", begin, end), size, ZERO)
        return (*allocated_cell(self.low, begin), *allocated_cell(self.size, size))

    def from_cursor(self) -> tuple[Stmt, ...]:
        """Return the statements that double the step from the last result on (exponential search), or from
        the begin of the window if the last result is too far."""
        begin, end = self.search.begin, self.search.end
        low, step = cell_value(self.low), cell_value(self.size)
        # The value may be smaller than the last one: then the search starts again at the begin.
        is_too_far = Unary("not", self.precedes(sub(low, ONE)))
        next_low = add(low, step)
        is_ahead = short_circuit_and(
            Compare("le", next_low, end), self.precedes(sub(next_low, ONE))
        )
        # The last doubling overshot: the result lies within step - 1 elements, and within the window.
        room = Binary("min", sub(step, ONE), sub(end, low))
        return (
            If(Compare("gt", low, begin), (If(is_too_far, (cell_store(self.low, begin),)),)),
            *allocated_cell(self.size, ONE),
            While(
                is_ahead,
                (
                    cell_store(self.low, next_low),
                    cell_store(self.size, mul(step, index(2))),
                ),
            ),
            cell_store(self.size, room),
        )

    def from_before(self, steps: int, stop: Var) -> tuple[Stmt, ...]:
        """Return the statements that walk up to `steps` elements from the last result on. If that is not
        enough, the rest of the window is left to `halving`. The cell must be initialized before with the
        begin of the window if that is a constant, else with 0."""
        begin, end = self.search.begin, self.search.end
        low = cell_value(self.low)
        is_ahead = short_circuit_and(Compare("lt", low, stop), self.precedes(low))
        remaining = Select(Compare("eq", low, stop), sub(end, low), ZERO)
        # A constant begin is the initial value of the cursor; another one may have grown since.
        is_within = integer_value(begin) is not None
        return (
            *(() if is_within else (cell_store(self.low, Binary("max", low, begin)),)),
            Let(stop, Binary("min", add(low, index(steps)), end)),
            While(is_ahead, (cell_store(self.low, add(low, ONE)),)),
            *allocated_cell(self.size, remaining),
        )

    def halving(self, middle: Var) -> While:
        """Return the loop that halves the window that is left (binary search without branches)."""
        low, size = cell_value(self.low), cell_value(self.size)
        # size - half rounds up, so that one element left is compared, too.
        half = Binary("shr", size, ONE)
        # A select instead of a branch: its outcome cannot be predicted in a binary search.
        moved = Select(self.precedes(sub(middle, ONE)), middle, low)
        body = (
            Let(middle, add(low, sub(size, half))),
            cell_store(self.low, moved),
            cell_store(self.size, half),
        )
        return While(Compare("gt", size, ZERO), body)

    def result(self) -> Expr:
        """Return the position found; for an exact search, -1 if the element there has another value."""
        low = cell_value(self.low)
        if self.search.kind != "exact":
            return low
        absent = index(-1)
        is_equal = Compare("eq", self.element(low), self.search.value)
        # The position may be the end of the window, where there is no element to compare.
        is_inside = Compare("lt", low, self.search.end)
        return IfThenElse(is_inside, Select(is_equal, low, absent), absent)

    def precedes(self, position: Expr) -> Expr:
        """Return the condition that the result comes after the element at a position."""
        op: Literal["le", "lt"] = "le" if self.search.kind == "upper" else "lt"
        return Compare(op, self.element(position), self.search.value)

    def element(self, position: Expr) -> Expr:
        dtype = self.dtypes[self.search.buffer]
        element = Load(self.search.buffer, (*self.search.prefix, position), dtype)
        return element if dtype_of(self.search.value) == dtype else widen(element)
