"""Inserts a bounds check (`Guard`) for every access that is not proved in bounds.

A guard that fails stops the kernel with the name of the buffer. Proofs use the bounds of loops, the
conditions of enclosing `If`s, and the facts about index buffers. Values in mutable buffers are not assumed,
except a condition until its operands are written. Expressions that may overflow are never assumed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

from gossamer_ir.analysis.bounded_reads import places_read
from gossamer_ir.analysis.lane_projection import LANE, count_of, in_lane
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.arith.simplify import TRUE
from gossamer_ir.core import build
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Compare,
    Expr,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Lanes,
    Let,
    Load,
    Module,
    Search,
    Stmt,
    Store,
    Unary,
    While,
)  # fmt: skip
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.walk import children, walk
from gossamer_lower.bounds.helpers.lane_checks import (
    at_the_ends,
    in_all_lanes,
    lanes_of_access,
)
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statement_utils import with_body, with_sides


@lowering_pass(takes=("loop",), without=("blocks",))
def insert_bounds_checks(module: Module) -> Module:
    """Inserts a `Guard` before each statement with an access that is not proved in bounds.

    It runs before vectorization, where there is one index to check; an access that is already a vector is
    checked as a whole.

    >>> from gossamer_lower.examples import body_text, program
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[i] = X[P[i]]
    ... ''')
    >>> print(body_text(insert_bounds_checks(before)))
    for i in T.serial(n):
        T.guard(P[i] >= 0 and P[i] < n, X)
        Y[i] = X[P[i]]
    """
    return map_functions(module, _guard_function)


def _guard_function(function: Function) -> Function:
    return with_body(function, _BoundsCheckInserter(function).body(function.body))


def guard_buffers(function: Function, names: Set[str]) -> Function:
    """Return the function with bounds checks for these buffers only. Vectorized loops count as serial here:
    a condition on a lane protects every access under it."""
    return with_body(function, _BoundsCheckInserter(function, names).body(function.body))


class _BoundsCheckInserter:
    """Visits the statements in order and tracks the conditions that hold at each of them."""

    def __init__(self, function: Function, names: Set[str] | None = None) -> None:
        self._names = names
        self._point = ProgramPoint(function)
        self._prover, self._overflow = self._point.prover, self._point.overflow
        self._lane_vars: set[str] = set()
        self._lane_conditions: list[Expr] = []
        self._answers: dict[tuple[int, Expr, Expr], tuple[Compare, ...]] = {}
        self._stated: defaultdict[Expr, list[Expr | None]] = defaultdict(list)
        """The conditions of the guards before one statement, each with its exceptions (`unless`)."""

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        with self._point.scope():
            for stmt in body:
                result += [*self._guards_before(stmt), self._statement(stmt)]
                self._learn(stmt)
        return tuple(result)

    def _learn(self, stmt: Stmt) -> None:
        """Records what holds after a statement, up to the end of the body."""
        if isinstance(stmt, Let) and free_vars(stmt.value) & self._lane_vars:
            self._lane_vars.add(stmt.var.name)
        if isinstance(stmt, Allocate) and self._names is None:
            self._require_lasting_size(stmt)
        self._point.after(stmt)

    def _require_lasting_size(self, stmt: Allocate) -> None:
        """Raises an error for a size that is read from mutable memory: guards evaluate the size again, and
        it may have changed."""
        for extent in stmt.buffer.shape:
            for node in walk(extent):
                if isinstance(node, Load) and node.buffer in self._point.written:
                    raise UnsupportedError(
                        "lower.changing_size",
                        f"The size of '{stmt.buffer.name}' is read from '{node.buffer}', which the "
                        "program writes.",
                        hint="Read it into a variable before.",
                    )

    def _statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                return self._loop(stmt)
            case While():
                again = self._guards_before(stmt)
                return with_body(stmt, (*self.body(stmt.body), *again))
            case If():
                return self._if(stmt)
        return stmt

    def _loop(self, loop: For) -> For:
        if loop.kind == "vectorized" and self._names is None:
            self._lane_vars.add(loop.var)
        with self._point.inside(loop):
            body = self.body(loop.body)
        self._lane_vars.discard(loop.var)
        return with_body(loop, body)

    def _if(self, stmt: If) -> If:
        with self._holding(stmt.condition, while_running=stmt.then_body):
            then_body = self.body(stmt.then_body)
        return with_sides(stmt, then_body, self.body(stmt.else_body))

    @contextmanager
    def _holding(self, condition: Expr, *, while_running: tuple[Stmt, ...] = ()) -> Iterator[None]:
        """Assumes a condition. A condition on the lane is kept apart: it becomes a mask, which protects
        only accesses that differ between lanes."""
        if free_vars(condition) & self._lane_vars:
            self._lane_conditions.append(condition)
            yield
            self._lane_conditions.pop()
        else:
            with self._point.under(condition, while_running):
                yield

    def _guards_before(self, stmt: Stmt) -> list[Guard]:
        """Return the guards for the expressions of a statement itself, innermost loads first."""
        if isinstance(stmt, For):
            self._require_proved_weight(stmt)
            expressions: list[Any] = [stmt.start, stmt.extent, stmt.grain]
        elif isinstance(stmt, (If, While)):
            expressions = [stmt.condition]
        else:
            expressions = [stmt]
        if self._stated:
            self._stated.clear()
        guards: list[Guard] = []
        for expression in expressions:
            if expression is not None:
                self._guard(expression, None, guards)
        return guards

    def _guard(self, node: Any, unless: Expr | None, guards: list[Guard]) -> None:
        """Appends the guards of a node; `unless` is the condition under which it is not evaluated."""
        kind = type(node)
        if kind is IfThenElse:
            self._guard_sides(node, unless, guards)
            return
        for child in children(node):
            if type(child) not in LEAVES:
                self._guard(child, unless, guards)
        if self._names is not None and getattr(node, "buffer", None) not in self._names:
            return
        if kind is Search:
            condition = self._unproved_window(node)
            if condition is not None:
                self._require(condition, unless, node.buffer, guards)
        elif kind is Load or kind is Store:
            lanes = lanes_of_access(node)
            condition = self._unproved(node) if lanes is None else self._unproved_in(node, lanes)
            if node.predicate is not None and lanes is None:
                unless = _either(unless, Unary("not", node.predicate))
            if condition is not None:
                self._require(condition, unless, node.buffer, guards)

    def _require(
        self, condition: Expr, unless: Expr | None, buffer: str, guards: list[Guard]
    ) -> None:
        """Appends a guard of the parts that no guard before the same statement checks. Without this, the
        guards of nested indirect indices would grow exponentially."""
        parts = [part for part in build.conjuncts(condition) if not self._is_stated(part, unless)]
        rest = build.conjoined(parts)
        if rest is not None:
            guards.append(Guard(_either(unless, rest), buffer))
            for part in parts:
                self._stated[part].append(unless)

    def _is_stated(self, part: Expr, unless: Expr | None) -> bool:
        """Return whether guards check the part already unless `unless`, or a prefix of it, holds."""
        known = self._stated.get(part, ())
        while known and unless is not None and unless not in known:
            match unless:
                case IfThenElse(condition=first, if_true=either) if either == TRUE:
                    unless = first
                case _:
                    unless = None
        return unless in known

    def _guard_sides(self, node: IfThenElse, unless: Expr | None, guards: list[Guard]) -> None:
        """Appends the guards of a condition, and of each value where it is evaluated."""
        self._guard(node.condition, unless, guards)
        opposite = Unary("not", node.condition)
        with self._holding(node.condition):
            self._guard(node.if_true, _either(unless, opposite), guards)
        with self._holding(opposite):
            self._guard(node.if_false, _either(unless, node.condition), guards)

    def _require_proved_weight(self, loop: For) -> None:
        """Raises an error unless the weight is proved in bounds. Load balancing evaluates it at any
        iteration and at the end of the range, outside of the loop, where no guard runs."""
        if loop.weight is None or self._names is not None:
            return
        with self._point.scope():
            self._point.assume_range(loop, build.add(loop.extent, build.ONE))
            guards: list[Guard] = []
            self._guard(loop.weight, None, guards)
        if guards:
            raise UnsupportedError(
                "lower.guarded_weight",
                f"The weight of the loop '{loop.var}' reads '{guards[0].buffer}' where it is not "
                "proved in bounds.",
                hint="Leave the weight out, or use the indptr of the loop's own axis.",
            )

    def _unproved(self, access: Load | Store) -> Expr | None:
        """Return the part of the bounds check that is not proved; None if all of it is.

        An access that is the same in all lanes is not masked, so conditions on the lane do not protect it.
        """
        if not self._lane_conditions:
            return self._out_of_bounds(access)
        is_masked = any(free_vars(index) & self._lane_vars for index in access.indices)
        with self._point.scope():
            for condition in self._lane_conditions if is_masked else ():
                self._point.assume(condition)
            unproved = self._out_of_bounds(access)
        if unproved is not None and not is_masked:
            raise _not_masked(access)
        return unproved

    def _unproved_in(self, access: Load | Store, lanes: Lanes) -> Expr | None:
        """Return the part of the bounds check of a vector access that is not proved for all lanes."""
        shape, mask = self._point.shapes[access.buffer], access.predicate
        with self._point.scope():
            self._overflow.bind(LANE.name, count_of(lanes))
            self._prover.assume_range(LANE.name, build.ZERO, count_of(lanes))
            if mask is not None:
                self._point.assume(in_lane(mask, LANE))
            return build.conjoined(
                in_all_lanes(part, index, mask=mask, lanes=lanes)
                if mask is not None or not self._overflow.is_exact(part.lhs)
                else at_the_ends(part, index, lanes=lanes)
                for index, extent in zip(access.indices, shape, strict=True)
                for part in self._unproved_parts(in_lane(index, LANE), extent)
            )

    def _out_of_bounds(self, access: Load | Store) -> Expr | None:
        shape = self._point.shapes[access.buffer]
        pairs = zip(access.indices, shape, strict=True)
        return build.conjoined(part for pair in pairs for part in self._unproved_parts(*pair))

    def _unproved_window(self, search: Search) -> Expr | None:
        """Return the part of the bounds check of a search window that is not proved. An empty window
        reads nothing, so it is always in bounds."""
        pairs = places_read(search, self._point.shapes[search.buffer])
        unproved = build.conjoined(part for pair in pairs for part in self._unproved_parts(*pair))
        if unproved is None:
            return None
        return IfThenElse(Compare("ge", search.begin, search.end), TRUE, unproved)

    def _unproved_parts(self, index: Expr, extent: Expr) -> tuple[Compare, ...]:
        """Return the parts of 0 <= index < extent that are not proved."""
        question = self._prover.state, index, extent
        parts = self._answers.get(question)
        if parts is None:
            parts = self._answers[question] = tuple(self._parts_to_check(index, extent))
        return parts

    def _parts_to_check(self, index: Expr, extent: Expr) -> Iterator[Compare]:
        """Yield the parts of 0 <= index < extent to check. Proofs are about unbounded integers. For an
        index that may wrap, one proved part alone says nothing: both bounds together exclude the wrap."""
        wide = build.widen(index)
        is_above, is_below = self._proved(wide, extent)
        if is_above and is_below:
            return
        is_exact = self._overflow.is_exact(wide)
        above, below = build.in_range(index, extent)
        if not (is_above and is_exact):
            yield above
        if not (is_below and is_exact):
            yield below

    def _proved(self, index: Expr, extent: Expr) -> tuple[bool, bool]:
        """Return whether 0 <= index, and whether index < extent, is proved for unbounded integers."""
        if not self._point.is_known(index, extent):
            return False, False
        left = Binary("sub", Binary("sub", extent, index), build.ONE)
        return self._prover.proves_nonnegative(index), self._prover.proves_nonnegative(left)


def _either(first: Expr | None, second: Expr) -> Expr:
    """Return the disjunction; the second condition is evaluated only if the first does not hold."""
    return second if first is None else IfThenElse(first, TRUE, second)


def _not_masked(access: Load | Store) -> UnsupportedError:
    return UnsupportedError(
        "lower.unmasked_lane",
        f"An access of '{access.buffer}' is the same in all lanes of a vectorized loop, and in bounds "
        "only if a condition on the lane holds.",
        hint="Read it before the loop, or do not vectorize.",
    )
