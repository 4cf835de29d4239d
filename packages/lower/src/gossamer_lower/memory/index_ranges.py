"""The range of elements of a buffer that some statements access, along each dimension.

An index is split into a part that is invariant in the statements and a part that varies with their loops.
The varying part lies between constants, which facts may give for the elements of index arrays, or in
[0, length) for a length that is known before the statements: the extent of a loop, or the bound in an
enclosing condition (the last tile of a row).

`gossamer_ir.analysis.proofs.symbolic_bounds` computes the bounds of one index in given loops. This module
merges all accesses, which must share the invariant part, and uses the conditions that enclose each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import Any, TypeAlias

import msgspec

from gossamer_ir.analysis.accesses.buffer_accesses import StmtInContext, reads_in, stmts_in_context
from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.analysis.proofs.program_point import is_invariant
from gossamer_ir.analysis.proofs.symbolic_bounds import constants_of, ends_of
from gossamer_ir.arith.affine import (
    ONE_FORM,
    Affine,
    affine_of,
    combine,
    expr_of,
    factors_of,
    multiplier_of,
    times,
)
from gossamer_ir.arith.inequalities import slack_of
from gossamer_ir.arith.nonaffine_bounds import strip_widening
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.core.statement_kinds import Body, effects_of
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    Function,
    If,
    InRange,
    Load,
    Stmt,
    Var,
    VScale,
)
from gossamer_ir.traversal.access_types import ELEMENT_NODES, INDEXED_NODES, READS
from gossamer_ir.traversal.walk import collect, stmts

_Conditions: TypeAlias = tuple[Expr, ...]


class Interval(msgspec.Struct, frozen=True):
    """The range of an index while a buffer is live: fixed + [low, high], or fixed + [0, length) for each of
    `lengths`."""

    fixed: Affine
    low: int = 0
    high: int = 0
    lengths: tuple[Affine, ...] = ()


def index_ranges_of(
    buffer: Buffer, live: tuple[Stmt, ...], function: Function
) -> list[Interval | None]:
    """Return one range for each dimension of the buffer in these statements of a function.

    It is None if an index cannot be split, if the invariant parts of different accesses differ, or if the
    buffer is searched.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_testkit.examples import program
    >>> (function,) = program("for i in T.serial(8): Y[n + i * 2] = 1.0").functions
    >>> (interval,) = index_ranges_of(function.buffers[1], function.body, function)
    >>> expr_of(interval.fixed) == index_var("n"), interval.low, interval.high
    (True, 0, 14)
    """
    accesses = list(_accesses(live, buffer.name))
    # A search reads a range of the buffer, which contraction would shift.
    if not all(isinstance(node, ELEMENT_NODES) for node, _ in accesses):
        return [None] * len(buffer.shape)
    bound_vars = _BoundVars(live, function)
    return [
        _merge_ranges(
            [
                bound_vars.interval(access.indices[dimension], enclosing)
                for access, enclosing in accesses
            ]
        )
        for dimension in range(len(buffer.shape))
    ]


def _accesses(body: tuple[Stmt, ...], name: str) -> Iterator[tuple[Any, _Conditions]]:
    """Yield the nodes that address elements of a buffer, each with the enclosing conditions."""
    start: _Conditions = ()
    for enclosed in stmts_in_context(body, start, _conditions_inside, buffers={name}):
        # A statement without a body may address an element itself.
        addressing = enclosed.effects.evaluates if enclosed.effects.bodies else (enclosed.stmt,)
        for node in collect(INDEXED_NODES, *addressing):
            if node.buffer == name:
                yield node, enclosed.context


def _conditions_inside(enclosed: StmtInContext[_Conditions], body: Body) -> _Conditions:
    # The condition of a `while` may no longer hold after a write in its body.
    conditions = body.conditions if isinstance(enclosed.stmt, If) else ()
    return (*enclosed.context, *conditions)


class _BoundVars:
    """The values known before the statements for the variables that they bind."""

    def __init__(self, live: tuple[Stmt, ...], function: Function) -> None:
        self._function = function
        self._facts = fact_index(invariant_facts(function))
        self._live = live
        self._loops = [stmt for stmt in stmts(live) if isinstance(stmt, For)]
        self._values = {loop.var: constants_of(loop) for loop in self._loops}

    @cached_property
    def _extents(self) -> dict[str, Expr]:
        """The extents of loops from 0 by variable, if they are not constant. Most indices need none."""
        return {
            loop.var: loop.extent
            for loop in self._loops
            if self._values[loop.var] is None
            and integer_value(loop.start) == 0
            and self._is_fixed(loop.extent)
        }

    @cached_property
    def _read(self) -> set[Expr]:
        """The elements that the statements read unconditionally."""
        return {
            node
            for stmt in self._live
            for part in effects_of(stmt).evaluates
            for node, is_certain in reads_in(part)
            if is_certain
        }

    def interval(self, index: Expr, enclosing: _Conditions) -> Interval | None:
        """Return the range of an index if these conditions hold; None if it cannot be split."""
        form = affine_of(index)
        fixed = {atom: by for atom, by in form.terms.items() if self._is_free(atom)}
        rest = form - Affine(fixed, 0)
        ends = ends_of(rest, partial(self._values_of, enclosing=enclosing))
        if ends is not None:
            return Interval(Affine(fixed, 0), *ends)
        # Without an invariant part, the whole dimension is accessed and contraction would save nothing.
        lengths = tuple(self._lengths(rest, enclosing)) if fixed else ()
        return Interval(Affine(fixed, 0), lengths=lengths) if lengths else None

    # Other operations: nothing is concluded from them.
    def _values_of(self, atom: Expr, enclosing: _Conditions) -> range | None:
        """Return the values that an atom may have, if constants bound them: a variable, a part of one, or an
        element of an index array. A masked load has other values in its inactive lanes."""
        match atom:
            case Var():
                return self._values.get(atom.name)
            case Binary(op="floordiv" | "floormod", rhs=Const() as divisor):
                return self._parts_of(atom, integer_value(divisor) or 0, enclosing)
        load = strip_widening(atom)
        if not isinstance(load, Load) or load.predicate is not None:
            return None
        fact = self._facts.last(load.buffer, InRange)
        low, high = (None, None) if fact is None else map(integer_value, (fact.low, fact.high))
        return None if low is None or high is None else range(low, high)

    def _parts_of(self, atom: Binary, divisor: int, enclosing: _Conditions) -> range | None:
        """Return the values of a quotient or a remainder: a loop over fused loops computes their variables
        like this. A condition that keeps the dividend below a constant is that of a split loop."""
        dividend = affine_of(atom.lhs)
        ends = ends_of(dividend, partial(self._values_of, enclosing=enclosing))
        if ends is None or divisor <= 0:
            return None
        low, high = ends[0], min([ends[1], *self._limits(dividend, enclosing)])
        if high < low:
            return None
        first, last = low // divisor, high // divisor
        if atom.op == "floordiv":
            return range(first, last + 1)
        return range(low % divisor, high % divisor + 1) if first == last else range(divisor)

    def _limits(self, form: Affine, enclosing: _Conditions) -> Iterator[int]:
        """Yield the constants that a form does not exceed, since conditions say so."""
        for condition in enclosing:
            slack = slack_of(condition)
            limit = None if slack is None else slack + form
            if limit is not None and not limit.terms and self._is_exact(condition):
                yield limit.constant

    def _lengths(self, rest: Affine, enclosing: _Conditions) -> Iterator[Affine]:
        """Yield upper bounds (exclusive) of the varying part, if it is not negative."""
        # The range must begin at 0 at least, since contracted indices start there.
        if rest.constant < 0 or not all(
            by > 0 and self._is_nonnegative(atom) for atom, by in rest.terms.items()
        ):
            return
        last = self._last_value(rest)
        if last is not None:
            yield last + ONE_FORM
        for condition in enclosing:
            slack = slack_of(condition)
            if slack is not None:
                # From rest < bound, written as slack = bound - 1 - index, the varying part is below slack +
                # rest + 1.
                length = slack + rest + ONE_FORM
                if self._is_fixed(expr_of(length)) and self._is_exact(condition, expr_of(length)):
                    yield length

    def _last_value(self, rest: Affine) -> Affine | None:
        """Return the value of the varying part in the last iteration of all loops, which is its largest: it
        is a sum of loop variables from 0, each multiplied by numbers that are not negative. None if an
        extent is unknown."""
        last = Affine({}, rest.constant)
        for atom, by in rest.terms.items():
            var, multiplier = _scaled_var(atom)
            values = self._values.get(var.name) if var else None
            extent = self._extents.get(var.name) if var else None
            if values:
                end = Affine({}, values[-1])
            elif extent is not None:
                end = affine_of(extent) - ONE_FORM
            else:
                return None
            last = combine(last, times(end, multiplier), by)
        return last

    def _is_nonnegative(self, atom: Expr) -> bool:
        """Return whether an atom is a loop variable that is never negative, or such a multiple of it."""
        var, _ = _scaled_var(atom)
        if var is None:
            return False
        values = self._values.get(var.name)
        return var.name in self._extents or bool(values and values[0] >= 0)

    def _is_fixed(self, expr: Expr) -> bool:
        """Return whether an expression is invariant in the statements, and reads only elements that they
        read unconditionally: it is evaluated before them, where other reads could be out of bounds."""
        return self._read.issuperset(collect(READS, expr)) and self._is_free(expr)

    def _is_exact(self, *exprs: Expr) -> bool:
        return all(map(overflow_of(self._function).is_exact, exprs))

    def _is_free(self, expr: Expr) -> bool:
        """Return whether an expression is invariant in the statements."""
        return is_invariant(expr, self._live, self._function)


def _scaled_var(atom: Expr) -> tuple[Var | None, Affine]:
    """Return the variable of an atom, and the power of vscale that it is multiplied by; None for any other
    atom."""
    others = [factor for factor in factors_of(atom) if not isinstance(factor, VScale)]
    if len(others) != 1 or not isinstance(others[0], Var):
        return None, ONE_FORM
    multiplier = multiplier_of(others[0], Affine({atom: 1}, 0))
    return others[0], multiplier


def _merge_ranges(intervals: list[Interval | None]) -> Interval | None:
    """Return the union of the ranges; None unless they agree in the invariant part, and in a length if
    they have lengths."""
    first = intervals[0] if intervals else None
    if first is None:
        return None
    for interval in intervals[1:]:
        if (
            interval is None
            or interval.fixed != first.fixed
            or bool(interval.lengths) != bool(first.lengths)
        ):
            return None
        # The buffer must hold what any of the accesses needs.
        low, high = min(first.low, interval.low), max(first.high, interval.high)
        lengths = tuple(length for length in first.lengths if length in interval.lengths)
        if first.lengths and not lengths:
            return None
        first = Interval(first.fixed, low, high, lengths)
    return first


def contracted_indices(
    indices: tuple[Expr, ...], intervals: Iterable[Interval | None]
) -> tuple[Expr, ...]:
    """Return the indices into the buffer contracted to these ranges."""
    result: list[Expr] = []
    for index, interval in zip(indices, intervals, strict=True):
        if interval is None:
            result.append(index)
        elif interval.lengths or interval.high > interval.low:
            rest = affine_of(index) - interval.fixed
            result.append(expr_of(Affine(rest.terms, rest.constant - interval.low)))
    return tuple(result) or (ZERO,)
