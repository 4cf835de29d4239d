"""Searches for values that never decrease in a window that stays become a walk along it.

A loop that searches `n` such values among `m` sorted elements looks at most at `n + m` elements when
each search starts at the result of the one before and steps ahead, where searching anew takes
`n * log(m)` steps. Where the next result is far away, that would be the worse bargain: after a few
steps the search halves what is left, so that none takes more than these steps longer than it did.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.analysis.monotone import never_decreases
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.arith.offsets import offset_of
from gossamer_ir.core import build
from gossamer_ir.nodes import (
    Expr,
    For,
    Function,
    IfThenElse,
    Let,
    Module,
    Monotone,
    Search,
    SortedSegments,
    Stmt,
    Var,
)  # fmt: skip
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.node_index import kinds_in
from gossamer_ir.traversal.walk import collect, free_vars, resolve
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.search.search_expansion import SearchCells, buffer_dtypes, cell, where
from gossamer_lower.statement_utils import each, with_bodies

STEPS = 8
"""How far a search walks before it halves: about a cache line of int64, and what a search in a few
hundred elements takes."""


@lowering_pass(takes=("loop",), without=("blocks",))
def merge_searches(module: Module) -> Module:
    """Takes a loop-stage module in which each search is the value of a let.

    A search becomes a walk where its window is sorted by the facts and the same in all iterations of
    a serial loop, and its value is proved not to decrease from one to the next. Each run of the loop
    has a cursor of its own, so loops around it may be parallel. The results are those of the search.

    >>> from gossamer_lower.examples import body_text, program
    >>> before = program('''
    ... T.assume(monotone(P))
    ... for i in T.serial(n):
    ...     at: T.int64 = T.search("lower", P, begin=0, end=n, value=i)
    ...     Y[i] = X[at]
    ... ''')
    >>> print(body_text(merge_searches(before)))
    at_cursor = T.alloc_buffer((1,), "int64", scope="local")
    at_cursor[0] = 0
    for i in T.serial(n):
        at_stop: T.int64 = T.min(at_cursor[0] + 8, n)
        while T.if_then_else(at_cursor[0] < at_stop, P[at_cursor[0]] < i, False):
            at_cursor[0] = at_cursor[0] + 1
        at_size = T.alloc_buffer((1,), "int64", scope="local")
        at_size[0] = T.Select(at_cursor[0] == at_stop, n - at_cursor[0], 0)
        while at_size[0] > 0:
            at_middle: T.int64 = at_cursor[0] + (at_size[0] - (at_size[0] >> 1))
            at_cursor[0] = T.Select(P[at_middle - 1] < i, at_middle, at_cursor[0])
            at_size[0] = at_size[0] >> 1
        at: T.int64 = at_cursor[0]
        Y[i] = X[at]
    """
    return map_functions(module, _merge_function)


def _merge_function(function: Function) -> Function:
    if Search not in kinds_in(function):
        return function
    merging = _Merging(function)
    return msgspec.structs.replace(function, body=merging.body(function.body))


_MOST_MENTIONS = 4096
"""A let whose value mentions more variables, those of lets resolved, stands for itself."""


class _Around(msgspec.Struct):
    """A loop around, the variables bound in it, and the cursors that belong before it."""

    loop: For
    bound: set[str]
    cursors: list[Stmt]


class _Merging:
    """Walks the statements in order, with what is known of the loops around each."""

    def __init__(self, function: Function) -> None:
        facts = invariant_facts(function)
        self._namer = namer_of(function)
        self._dtypes = buffer_dtypes(function)
        self._monotone = {fact.buffer for fact in facts if isinstance(fact, Monotone)}
        self._segments = {
            (fact.buffer, fact.indptr) for fact in facts if isinstance(fact, SortedSegments)
        }
        self._point = ProgramPoint(function)
        self._values: dict[str, Expr] = {}
        self._sizes: dict[str, int] = {}
        self._around: list[_Around] = []

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return each(body, self._statement)

    def _statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Let():
                return self._let(stmt)
            case For():
                return self._loop(stmt)
        return (with_bodies(stmt, self.body),)

    def _loop(self, loop: For) -> tuple[Stmt, ...]:
        self._around.append(_Around(loop, {loop.var}, []))
        with self._point.inside(self._with_values(loop)):
            body = self.body(loop.body)
        cursors = self._around.pop().cursors
        return (*cursors, msgspec.structs.replace(loop, body=body))

    def _with_values(self, loop: For) -> For:
        """A loop whose range is said without lets."""
        start, extent = resolve(loop.start, self._values), resolve(loop.extent, self._values)
        return msgspec.structs.replace(loop, start=start, extent=extent)

    def _let(self, let: Let) -> tuple[Stmt, ...]:
        for around in self._around[-1:]:
            around.bound.add(let.var.name)
        self._resolve(let)
        self._point.after(let)
        match let.value:
            case Search() as search:
                found = self._walked(let, search)
                return (let,) if found is None else (*found[0], found[1])
            case IfThenElse(condition=condition, if_true=Search() as search):
                found = self._walked(let, search)
                return (let,) if found is None else where(condition, *found)
        return (let,)

    def _resolve(self, let: Let) -> None:
        """Keeps the value of a let in terms of what is no let, unless that would be very long: each let may
        mention others several times."""
        size = sum(self._sizes.get(found.name, 1) for found in collect(Var, let.value))
        if size <= _MOST_MENTIONS:
            self._sizes[let.var.name] = size
            self._values[let.var.name] = resolve(let.value, self._values)

    def _walked(self, let: Let, search: Search) -> tuple[tuple[Stmt, ...], Let] | None:
        """Statements that find the result of a search, and the let that holds it; None where it
        stays a search."""
        around = self._varying(search)
        if around is None or not self._is_sorted(search) or not self._ascends(search, around.loop):
            return None
        name = let.var.name
        low, size = self._namer.fresh(f"{name}_cursor"), self._namer.fresh(f"{name}_size")
        stop = build.index_var(self._namer.fresh(f"{name}_stop"))
        middle = build.index_var(self._namer.fresh(f"{name}_middle"))
        cells = SearchCells(search, low, size, self._dtypes)
        is_constant = build.integer_value(search.begin) is not None
        around.cursors += cell(low, search.begin if is_constant else build.ZERO)
        return (*cells.from_before(STEPS, stop), cells.halving(middle)), Let(
            let.var, cells.result()
        )

    def _varying(self, search: Search) -> _Around | None:
        """The innermost loop that changes a search, where it changes the value only, and is serial
        like those inside it."""
        window = {name for part in _window(search) for name in free_vars(part)}
        names = window | free_vars(search.value)
        for around in reversed(self._around):
            if around.loop.kind != "serial":
                return None
            if names & around.bound:
                return None if window & around.bound else around
        return None

    def _is_sorted(self, search: Search) -> bool:
        """Whether what a search looks at is sorted by the facts and stays as it is."""
        if not self._point.is_unchanging(search):
            return False
        is_row = (search.buffer, None) in self._segments
        if search.buffer in self._monotone or is_row:
            return True
        begin, end = (resolve(part, self._values) for part in (search.begin, search.end))
        offset = offset_of(begin, end)
        return offset is not None and (search.buffer, offset.buffer) in self._segments

    def _ascends(self, search: Search, loop: For) -> bool:
        """Whether the value of a search is proved not to decrease from iteration to iteration."""
        value = resolve(build.widen(search.value), self._values)
        with self._point.scope():
            found = self._with_values(loop)
            self._point.assume_range(found, build.sub(found.extent, build.ONE))
            return never_decreases(value, found, self._point)


def _window(search: Search) -> Iterator[Expr]:
    yield from (*search.prefix, search.begin, search.end)
