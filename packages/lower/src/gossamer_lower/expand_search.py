"""Searches become loops.

A single search halves its window, without a branch that depends on what it reads. Where several
searches of one window follow each other, as in a loop, each starts at the result of the one before
and doubles its step until it is past the value (exponential search: Bentley and Yao, "An almost
optimal algorithm for unbounded searching", 1976): next to nothing where values ascend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from gossamer_ir import build
from gossamer_ir.names import Namer
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    If,
    IfThenElse,
    Let,
    Load,
    Module,
    Search,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)  # fmt: skip
from gossamer_ir.simplify import FALSE
from gossamer_ir.walk import free_vars, statements, walk
from gossamer_lower.hoist_searches import is_searching
from gossamer_lower.stages import bound_variables, map_functions, names_of

_Window = tuple[str, str, Expr, Expr]
"""What searches have in common that can start at each other's result: the kind of comparison, the
buffer, begin and end."""


def expand_search(module: Module) -> Module:
    """Removes the searches of a loop-stage module in which each is the value of a let.

    >>> from gossamer_lower.examples import body_text, program
    >>> before = program('''
    ... at: T.int64 = T.search("lower", P, begin=0, end=n, value=5)
    ... Y[0] = X[at]
    ... ''')
    >>> print(body_text(expand_search(before)))
    at_low = T.alloc_buffer((1,), "int64", scope="local")
    at_low[0] = 0
    at_size = T.alloc_buffer((1,), "int64", scope="local")
    at_size[0] = n
    while at_size[0] > 0:
        at_middle: T.int64 = at_low[0] + (at_size[0] - (at_size[0] >> 1))
        at_low[0] = T.Select(P[at_middle - 1] < 5, at_middle, at_low[0])
        at_size[0] = at_size[0] >> 1
    at: T.int64 = at_low[0]
    Y[0] = X[at]
    """
    return map_functions(module, "loop", "loop", _expand_function)


def _expand_function(function: Function) -> Function:
    if not is_searching(*function.body):
        return function
    expanding = _Expanding(function)
    return msgspec.structs.replace(function, body=expanding.body(function.body, {}))


class _Expanding:
    """Knows the dtypes of buffers, and the names that are taken."""

    def __init__(self, function: Function) -> None:
        self._namer = Namer(names_of(function))
        self._dtypes = {found.name: found.dtype for found in function.buffers}
        for stmt in statements(function.body):
            if isinstance(stmt, Allocate):
                self._dtypes[stmt.buffer.name] = stmt.buffer.dtype

    def body(self, body: tuple[Stmt, ...], cursors: dict[_Window, str]) -> tuple[Stmt, ...]:
        """Expands statements; `cursors` hold the last results of searches in a window."""
        cursors = dict(cursors)
        result: list[Stmt] = []
        shared = _shared_windows(body)
        for stmt in body:
            for window in dict.fromkeys(_windows(stmt)):
                if window in shared and window not in cursors:
                    cursors[window] = self._namer.fresh(f"{window[1]}_cursor")
                    result += _cell(cursors[window], window[2])
            result += self._statement(stmt, cursors)
        return tuple(result)

    def _statement(self, stmt: Stmt, cursors: dict[_Window, str]) -> tuple[Stmt, ...]:
        match stmt:
            case Let(value=Search() as search):
                found, let = self._search(stmt, search, cursors)
                return (*found, let)
            case Let(value=IfThenElse(condition=condition, if_true=Search() as search)):
                found, let = self._search(stmt, search, {})
                cells = [part for part in found if isinstance(part, Allocate)]
                steps = tuple(part for part in found if part not in cells)
                value = IfThenElse(condition, let.value, build.ZERO)
                return (*cells, If(condition, steps), Let(stmt.var, value))
            case For():
                inner = cursors if stmt.kind == "serial" else {}
                return (msgspec.structs.replace(stmt, body=self.body(stmt.body, inner)),)
            case While():
                return (While(stmt.condition, self.body(stmt.body, cursors)),)
            case If():
                then_body = self.body(stmt.then_body, cursors)
                return (If(stmt.condition, then_body, self.body(stmt.else_body, cursors)),)
        return (stmt,)

    def _search(
        self, let: Let, search: Search, cursors: dict[_Window, str]
    ) -> tuple[tuple[Stmt, ...], Let]:
        """Statements that find the result, and the let that holds it."""
        window = _window(search)
        cursor = None if window is None else cursors.get(window)
        low = cursor or self._namer.fresh(f"{let.var.name}_low")
        size = self._namer.fresh(f"{let.var.name}_size")
        cells = _Cells(search, low, size, self._dtypes)
        start = cells.from_scratch() if cursor is None else cells.from_cursor()
        middle = build.index_var(self._namer.fresh(f"{let.var.name}_middle"))
        return (*start, cells.halving(middle)), Let(let.var, cells.result())


class _Cells(msgspec.Struct, frozen=True):
    """One search: `low` holds a position that the result does not come before, `size` how far behind
    it the result may be."""

    search: Search
    low: str
    size: str
    dtypes: dict[str, str]

    def from_scratch(self) -> tuple[Stmt, ...]:
        """The whole window."""
        begin, end = self.search.begin, self.search.end
        return (*_cell(self.low, begin), *_cell(self.size, build.sub(end, begin)))

    def from_cursor(self) -> tuple[Stmt, ...]:
        """Doubles the step from the last result on, or from the begin where that is too far."""
        begin, end = self.search.begin, self.search.end
        low, step = _read(self.low), _read(self.size)
        is_too_far = Unary("not", self._precedes(build.sub(low, build.ONE)))
        next_low = build.add(low, step)
        is_ahead = IfThenElse(
            Compare("le", next_low, end), self._precedes(build.sub(next_low, build.ONE)), FALSE
        )
        room = Binary("min", build.sub(step, build.ONE), build.sub(end, low))
        return (
            If(Compare("gt", low, begin), (If(is_too_far, (_write(self.low, begin),)),)),
            *_cell(self.size, build.ONE),
            While(
                is_ahead,
                (_write(self.low, next_low), _write(self.size, build.mul(step, build.index(2)))),
            ),
            _write(self.size, room),
        )

    def halving(self, middle: Var) -> While:
        """Halves what is left; where its first half precedes the value, goes on behind it."""
        low, size = _read(self.low), _read(self.size)
        half = Binary("shr", size, build.ONE)
        moved = Select(self._precedes(build.sub(middle, build.ONE)), middle, low)
        body = (
            Let(middle, build.add(low, build.sub(size, half))),
            _write(self.low, moved),
            _write(self.size, half),
        )
        return While(Compare("gt", size, build.ZERO), body)

    def result(self) -> Expr:
        """The position found; for an exact search -1 where another value stands there."""
        low = _read(self.low)
        if self.search.kind != "exact":
            return low
        absent = build.index(-1)
        is_found = Compare("eq", self._element(low), self.search.value)
        is_inside = Compare("lt", low, self.search.end)
        return IfThenElse(is_inside, Select(is_found, low, absent), absent)

    def _precedes(self, position: Expr) -> Expr:
        """Whether the result comes behind the element at a position."""
        op: Literal["le", "lt"] = "le" if self.search.kind == "upper" else "lt"
        return Compare(op, self._element(position), self.search.value)

    def _element(self, position: Expr) -> Expr:
        dtype = self.dtypes[self.search.buffer]
        element = Load(self.search.buffer, (*self.search.prefix, position), dtype)
        return element if build.dtype_of(self.search.value) == dtype else build.widen(element)


# --- cells


def _cell(name: str, value: Expr) -> tuple[Stmt, ...]:
    return Allocate(Buffer(name, (build.ONE,), "int64", None, "local")), _write(name, value)


def _read(name: str) -> Load:
    return Load(name, (build.ZERO,), "int64")


def _write(name: str, value: Expr) -> Store:
    return Store(name, (build.ZERO,), value)


# --- windows


def _window(search: Search) -> _Window | None:
    """The window of a search; None where it reads memory to know it."""
    if search.prefix or any(isinstance(node, Load) for node in walk(search)):
        return None
    kind = "upper" if search.kind == "upper" else "lower"
    return kind, search.buffer, search.begin, search.end


def _windows(stmt: Stmt) -> Iterator[_Window]:
    """The windows of the searches in a statement, those in a loop twice; not those that run on
    other threads, which cannot share a cursor."""
    match stmt:
        case Let(value=Search() as search):
            window = _window(search)
            if window is not None:
                yield window
        case For(kind="serial") | While():
            for inner in (*stmt.body, *stmt.body):
                yield from _windows(inner)
        case If():
            for inner in (*stmt.then_body, *stmt.else_body):
                yield from _windows(inner)


def _shared_windows(body: tuple[Stmt, ...]) -> set[_Window]:
    """The windows that are searched more than once below, and known before."""
    found = Counter(window for stmt in body for window in _windows(stmt))
    again = {window for window, count in found.items() if count > 1}
    bound = bound_variables(body) if again else set()
    return {window for window in again if bound.isdisjoint(free_vars(*window[2:]))}
