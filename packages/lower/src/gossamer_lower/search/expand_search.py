"""Expands searches into loops.

A single search is a binary search without data-dependent branches. If the same window is searched several
times, as in a loop, each search starts at the result of the previous one and doubles its step until it is
past the value (exponential search: Bentley and Yao, "An almost optimal algorithm for unbounded searching",
1976). This takes few steps if the values ascend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.analysis.proofs.program_point import is_invariant
from gossamer_ir.core.build import add, index_var, sub
from gossamer_ir.nodes import Expr, For, Function, If, IfThenElse, Let, Load, Module, Search, Stmt
from gossamer_ir.traversal.fields import body_fields
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.node_index import types_in
from gossamer_ir.traversal.walk import contains
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.search.search_state import (
    SearchCells,
    allocated_cell,
    buffer_dtypes,
    search_under,
)
from gossamer_lower.statements.rebuild import with_bodies

_Window: TypeAlias = tuple[str, str, Expr, Expr]
"""The kind of comparison, the buffer, begin and end: searches that agree in these share a search cursor."""


@lowering_pass(
    takes=("loop",), acts_on="searches", without=("blocks",), removes=("searches",), is_stable=True
)
def expand_search(module: Module) -> Module:
    """Expand searches into loops. Each search must be the value of a let (`hoist_searches`).

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
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
    return map_functions(module, _expand_function)


def _expand_function(function: Function) -> Function:
    if Search not in types_in(function):
        return function
    expander = _SearchExpander(function)
    return replace(function, body=expander.body(function.body, {}))


class _SearchExpander:
    """Expands the searches of one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._namer = namer_of(function)
        self._dtypes = buffer_dtypes(function)
        self._overflow = overflow_of(function)

    def body(self, body: tuple[Stmt, ...], search_cursors: dict[_Window, str]) -> tuple[Stmt, ...]:
        """Expand statements; `search_cursors` are cells with the last results in windows."""
        # A copy: cursors that are allocated in this body do not exist outside of it.
        search_cursors = dict(search_cursors)
        result: list[Stmt] = []
        shared = _shared_windows(body, self._function)
        for stmt in body:
            for window in dict.fromkeys(_windows(stmt)):
                is_new = window in shared and window not in search_cursors
                # A search cursor starts at the begin of the window and moves;
                # an overflow of its step could not be detected.
                if is_new and self._is_exact(*window[2:]):
                    search_cursors[window] = self._namer.fresh(f"{window[1]}_cursor")
                    result += allocated_cell(search_cursors[window], window[2])
            result += self._stmt(stmt, search_cursors)
        return tuple(result)

    def _stmt(self, stmt: Stmt, search_cursors: dict[_Window, str]) -> tuple[Stmt, ...]:
        match stmt:
            case Let(value=Search() as search):
                expanded, let = self._search(stmt, search, search_cursors)
                return (*expanded, let)
            # Without cursors: under a condition, the shared cursor would not be advanced in each iteration.
            case Let(value=IfThenElse(if_true=Search() as search) as lazy):
                expanded, let = self._search(stmt, search, {})
                return search_under(lazy.condition, expanded, let, otherwise=lazy.if_false)
        # Threads cannot share a search cursor.
        inner = {} if isinstance(stmt, For) and stmt.kind != "serial" else search_cursors
        return (with_bodies(stmt, lambda body: self.body(body, inner)),)

    def _is_exact(self, begin: Expr, end: Expr) -> bool:
        """Return whether neither the length of a window nor a step past its end can overflow."""
        return self._overflow.is_exact(add(sub(end, begin), end))

    def _search(
        self, let: Let, search: Search, search_cursors: dict[_Window, str]
    ) -> tuple[tuple[Stmt, ...], Let]:
        """Return the statements of a search, and the let of its result."""
        window = _window(search)
        search_cursor = None if window is None else search_cursors.get(window)
        low = search_cursor or self._namer.fresh(f"{let.var.name}_low")
        size = self._namer.fresh(f"{let.var.name}_size")
        cells = SearchCells(search, low, size, self._dtypes)
        if search_cursor is None:
            start = cells.from_scratch(may_wrap=not self._is_exact(search.begin, search.end))
        else:
            start = cells.from_cursor()
        middle = index_var(self._namer.fresh(f"{let.var.name}_middle"))
        return (*start, cells.halving(middle)), Let(let.var, cells.result())


# --- windows


def _window(search: Search) -> _Window | None:
    """Return the window of a search; None if the window is read from memory."""
    # Two such windows may differ although their texts are equal.
    if search.prefix or contains(Load, search):
        return None
    # An exact search is a lower one with a comparison at the end, so both share a cursor.
    kind = "upper" if search.kind == "upper" else "lower"
    return kind, search.buffer, search.begin, search.end


def _windows(stmt: Stmt) -> Iterator[_Window]:
    """Yield the windows of the searches in a statement, twice for those in a loop. Loops that are not
    serial are skipped: their iterations run on other threads, which cannot share a cursor."""
    if isinstance(stmt, Let) and isinstance(stmt.value, Search):
        window = _window(stmt.value)
        if window is not None:
            yield window
    if isinstance(stmt, For) and stmt.kind != "serial":
        return
    # A loop searches at least twice, as far as is known; one search in a branch may never run.
    times = 1 if isinstance(stmt, If) else 2
    for field in body_fields(type(stmt)):
        for inner in getattr(stmt, field) * times:
            yield from _windows(inner)


def _shared_windows(body: tuple[Stmt, ...], function: Function) -> set[_Window]:
    """Return the windows that are searched more than once in the body, and are invariant in it."""
    counts = Counter(window for stmt in body for window in _windows(stmt))
    return {
        window
        for window, count in counts.items()
        if count > 1 and all(is_invariant(end, body, function) for end in window[2:])
    }
