"""Merges the searches of a loop, for values that never decrease in an invariant window, into one walk.

If each search starts at the result of the previous one and steps forward, `n` searches among `m` sorted
elements read at most `n + m` elements; independent searches take `n * log(m)` steps. If the next result is
far away, walking would be slower, so after `MAX_LINEAR_STEPS` steps the search is a binary search of the
rest: none takes more than these steps longer than an independent search.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.analysis.proofs.monotone import is_monotone
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.offsets import offset_of
from gossamer_ir.core.build import ONE, ZERO, index_var, integer_value, sub, widen
from gossamer_ir.facts.fact_index import fact_index
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
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.node_index import types_in
from gossamer_ir.traversal.statement_queries import loop_of
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import collect
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.search.search_state import (
    SearchCells,
    allocated_cell,
    buffer_dtypes,
    search_under,
)
from gossamer_lower.statements.rebuild import map_stmts, with_bodies

MAX_LINEAR_STEPS = 8
"""The number of elements that a search walks before it halves the rest: a cache line of int64, and the steps
of a binary search among a few hundred elements."""


@lowering_pass(
    takes=("loop",),
    acts_on="searches",
    without=("blocks",),
    after={"hoist_searches": "it takes searches that are the value of a let"},
    before={"expand_search": "the walk that it makes is simpler than the loops of each search"},
)
def merge_searches(module: Module) -> Module:
    """Turn searches for ascending values in one sorted window into a walk along it.

    Each search must be the value of a let. Facts must state that the window is sorted; it must be invariant
    in a serial loop, and the value must be proved not to decrease from one iteration to the next. Each run
    of the loop has its own search cursor, so the loops around it may be parallel. The results do not change.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
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
    if Search not in types_in(function):
        return function
    merger = _SearchMerger(function)
    return replace(function, body=merger.body(function.body))


_MAX_MENTIONS = 4096
"""A let whose value contains more variables than this, once lets are inlined, is not inlined."""


class _EnclosingLoop(msgspec.Struct):
    """An enclosing loop, the variables bound in it, and the search cursors to allocate before it."""

    loop: For
    bound: set[str]
    search_cursors: list[Stmt]


class _SearchMerger:
    """Visits the statements in order, and tracks the enclosing loops and the values of lets."""

    def __init__(self, function: Function) -> None:
        self._namer = namer_of(function)
        self._dtypes = buffer_dtypes(function)
        self._facts = fact_index(invariant_facts(function))
        self._point = ProgramPoint(function)
        self._values: dict[str, Expr] = {}
        self._sizes: dict[str, int] = {}
        self._loops: list[_EnclosingLoop] = []

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return map_stmts(body, self._stmt)

    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Let():
                return self._let(stmt)
            case For():
                return self._loop(stmt)
        # In another loop over a variable, values do not ascend with those of a `For` around it.
        return (stmt if loop_of(stmt) else with_bodies(stmt, self.body),)

    def _loop(self, loop: For) -> tuple[Stmt, ...]:
        self._loops.append(_EnclosingLoop(loop, {loop.var}, []))
        # Lets are inlined in the range, so that the prover relates it to what is searched for.
        with self._point.inside(self._with_values(loop)):
            body = self.body(loop.body)
        search_cursors = self._loops.pop().search_cursors
        return (*search_cursors, replace(loop, body=body))

    def _with_values(self, loop: For) -> For:
        """Return the loop with the lets in its range inlined."""
        start, extent = resolve(loop.start, self._values), resolve(loop.extent, self._values)
        return replace(loop, start=start, extent=extent)

    def _let(self, let: Let) -> tuple[Stmt, ...]:
        for enclosing in self._loops[-1:]:
            enclosing.bound.add(let.var.name)
        # Before the search below, whose value may use this let.
        self._resolve(let)
        self._point.move_past(let)
        match let.value:
            case Search() as search:
                walked = self._walk(let, search)
                return (let,) if walked is None else (*walked[0], walked[1])
            case IfThenElse(condition=condition, if_true=Search() as search, if_false=otherwise):
                walked = self._walk(let, search)
                if walked is not None:
                    return search_under(condition, *walked, otherwise=otherwise)
        return (let,)

    def _resolve(self, let: Let) -> None:
        """Record the value of a let with other lets inlined, unless that would be very long: each let may use
        others several times, so the length may grow exponentially."""
        size = sum(self._sizes.get(var.name, 1) for var in collect(Var, let.value))
        if size <= _MAX_MENTIONS:
            self._sizes[let.var.name] = size
            self._values[let.var.name] = resolve(let.value, self._values)

    def _walk(self, let: Let, search: Search) -> tuple[tuple[Stmt, ...], Let] | None:
        """Return the statements of a walk, and the let of its result; None if the search stays."""
        enclosing = self._varying_loop(search)
        if (
            enclosing is None
            or not self._is_sorted(search)
            or not self._ascends(search, enclosing.loop)
        ):
            return None
        name = let.var.name
        low, size = self._namer.fresh(f"{name}_cursor"), self._namer.fresh(f"{name}_size")
        stop = index_var(self._namer.fresh(f"{name}_stop"))
        middle = index_var(self._namer.fresh(f"{name}_middle"))
        cells = SearchCells(search, low, size, self._dtypes)
        is_constant = integer_value(search.begin) is not None
        # Before the loop in which the value varies: the cursor lives across its iterations.
        enclosing.search_cursors += allocated_cell(low, search.begin if is_constant else ZERO)
        return (*cells.from_before(MAX_LINEAR_STEPS, stop), cells.halving(middle)), Let(
            let.var, cells.result()
        )

    def _varying_loop(self, search: Search) -> _EnclosingLoop | None:
        """Return the innermost loop in which a search varies, if only the value varies there, and this loop
        and those inside it are serial; else None."""
        window = {name for part in _window(search) for name in free_vars(part)}
        names = window | free_vars(search.value)
        for enclosing in reversed(self._loops):
            # Iterations of a parallel loop run in any order, so the values do not ascend.
            if enclosing.loop.kind != "serial":
                return None
            # The innermost loop that matters: outer loops may restart the walk.
            if names & enclosing.bound:
                return None if window & enclosing.bound else enclosing
        return None

    def _is_sorted(self, search: Search) -> bool:
        """Return whether facts state that the window of a search is sorted, and nothing writes to it."""
        # A write to the array may break its order.
        if not self._point.is_stable(search):
            return False
        indptrs = {fact.indptr for fact in self._facts.about(search.buffer, SortedSegments)}
        if self._facts.holds(search.buffer, Monotone) or None in indptrs:
            return True
        begin, end = (resolve(part, self._values) for part in (search.begin, search.end))
        offset = offset_of(begin, end)
        return offset is not None and offset.buffer in indptrs

    def _ascends(self, search: Search, loop: For) -> bool:
        """Return whether the value of a search is proved not to decrease from one iteration to the next."""
        value = resolve(widen(search.value), self._values)
        with self._point.scope():
            resolved = self._with_values(loop)
            # All iterations but the last: each is compared with the next one.
            self._point.assume_range(resolved, sub(resolved.extent, ONE))
            return is_monotone(value, resolved, self._point)


def _window(search: Search) -> Iterator[Expr]:
    yield from (*search.prefix, search.begin, search.end)
