"""The least and the greatest value of an index while loops run, as constants or affine forms.

The bounds assume that each loop has an iteration; otherwise there is no value to bound. Loop variables are
replaced by an end of their range, innermost first, so that terms that an inner range shares with the index
cancel: over a row, `indptr[i] + j` is at most `indptr[i + 1] - 1`.

Two related analyses answer other questions: `OverflowAnalysis` (can an expression wrap?) and the prover of a
`ProgramPoint` (is a value in a given range?).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.analysis.lane_projection import LANE, lane_count, lane_of, lanes_of
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.affine import (
    ONE_FORM,
    ZERO_FORM,
    Affine,
    affine_of,
    combine,
    expr_of,
    factors_of,
    multiply,
)
from gossamer_ir.core.build import (
    ONE,
    ZERO,
    floordiv,
    integer_value,
    sub,
    unconditional_extent,
    widen,
)
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Binary,
    Block,
    Buffer,
    Cast,
    Expr,
    For,
    Function,
    InRange,
    Load,
    Monotone,
    Stmt,
    Var,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.statement_queries import loop_of, vars_bound
from gossamer_ir.traversal.walk import stmts


def constants_of(loop: For) -> range | None:
    """Return the values of the variable of a loop; None unless its bounds are constant.

    >>> from gossamer_ir.core.build import index
    >>> constants_of(For("i", index(2), index(3), ()))
    range(2, 5)
    """
    start, extent = integer_value(loop.start), integer_value(loop.extent)
    return None if start is None or extent is None else range(start, start + extent)


def ends_of(form: Affine, values_of: Callable[[Expr], range | None]) -> tuple[int, int] | None:
    """Return the least and the greatest value of a sum of atoms; None unless all of them have known values.
    Intermediate results may wrap; the sum is still between these constants.

    >>> from gossamer_ir.core.build import add, index, index_var, mul
    >>> i, j = index_var("i"), index_var("j")
    >>> ends_of(affine_of(add(mul(i, index(4)), j)), {i: range(3), j: range(2)}.get)
    (0, 9)
    """
    low = high = form.constant
    for atom, by in form.terms.items():
        values = values_of(atom)
        # Unknown, or an empty range, for which there is no value to bound.
        if not values:
            return None
        ends = by * values[0], by * values[-1]
        low, high = low + min(ends), high + max(ends)
    return low, high


class SymbolicBounds:
    """Bounds of the indices in a body, from the facts of its function and the loops and lets around it."""

    def __init__(self, function: Function, body: tuple[Stmt, ...]) -> None:
        self._facts = fact_index(invariant_facts(function))
        buffers = [buffer for buffer in function.buffers if isinstance(buffer, Buffer)]
        self._lengths = {buffer.name: buffer.shape[-1] for buffer in buffers if buffer.shape}
        self._point = ProgramPoint(function, binds_all=True)
        for stmt in _enclosing_bindings(function, body):
            self._assume(stmt)

    def _assume(self, stmt: Stmt) -> None:
        loop = loop_of(stmt)
        if loop is not None:
            self._point.assume_loop(loop)
        elif isinstance(stmt, Block):
            for iterator in stmt.iters:
                self._point.assume_domain(iterator)
        else:
            self._point.move_past(stmt)

    def bounds(self, expr: Expr, loops: Sequence[For]) -> tuple[Affine, Affine] | None:
        """Return the least and the greatest value of an index while loops (given outermost first) run, over
        all lanes of a vector; None if there are no known bounds."""
        lanes = lanes_of(expr)
        if lanes is None:
            return self._scalar_bounds(expr, loops)
        lane = lane_of(expr, LANE)
        inner = For(LANE.name, ZERO, lane_count(lanes), ())
        with self._point.inside(inner):
            return None if lane is None else self._scalar_bounds(lane, (*loops, inner))

    def _scalar_bounds(self, expr: Expr, loops: Sequence[For]) -> tuple[Affine, Affine] | None:
        if not self._point.is_stable_and_exact(expr):
            return None
        low: Affine | None = affine_of(expr)
        high = low
        # Innermost first: the ends of an inner loop contain the variables of outer ones,
        # which are replaced next.
        for loop in reversed(loops):
            low = low and self._end(low, loop, up=False)
            high = high and self._end(high, loop, up=True)
        return None if low is None or high is None else (low, high)

    def within(self, low: Affine, high: Affine, extent: Expr) -> tuple[Affine, Affine]:
        """Return bounds of an index, clamped to 0, ..., extent - 1 unless they are proved to be in this
        range."""
        last = affine_of(sub(extent, ONE))
        return self.extremum("max", low, ZERO_FORM), self.extremum("min", high, last)

    # Other operations: none occurs; this makes the operations itself.
    def extremum(self, op: Literal["min", "max"], first: Affine, second: Affine) -> Affine:
        """Return the minimum or maximum of two bounds: one of them if their order is proved."""
        apart = expr_of(first - second)
        if self._point.prover.proves_nonnegative(apart):
            return first if op == "max" else second
        if self._point.prover.proves_nonnegative(sub(ZERO, apart)):
            return second if op == "max" else first
        return affine_of(Binary(op, expr_of(first), expr_of(second)))

    def _end(self, form: Affine, loop: For, *, up: bool) -> Affine | None:
        """Return the greatest (`up`) or least value of a form while a loop runs."""
        result = Affine({}, form.constant)
        for atom, coefficient in form.terms.items():
            # A negative coefficient turns the directions around.
            part = self._end_of_atom(atom, loop, up=up == (coefficient > 0))
            if part is None:
                return None
            result = combine(result, part, coefficient)
        return result

    def _end_of_atom(self, atom: Expr, loop: For, *, up: bool) -> Affine | None:
        if loop.var not in free_vars(atom):
            return Affine({atom: 1}, 0)
        match atom:
            case Var():
                return self._end_of_loop(loop, up=up)
            case Binary(op="mul"):
                return self._end_of_product(atom, loop, up=up)
            case Binary(op="floordiv" | "floormod", rhs=divisor):
                return self._end_of_division(atom, loop, integer_value(divisor), up=up)
            case Binary(op="min" | "max", lhs=lhs, rhs=rhs):
                ends = [self._end(affine_of(side), loop, up=up) for side in (lhs, rhs)]
                end_exprs = [expr_of(end) for end in ends if end is not None]
                # Both ends: min(i, n - i) is not monotone in i, but lies between the ends of its operands.
                return affine_of(Binary(atom.op, *end_exprs)) if len(end_exprs) == 2 else None
            case Cast(dtype="int64", value=Load() as load) | (Load() as load):
                return self._end_of_load(load, loop, up=up)
        return None

    def _end_of_loop(self, loop: For, *, up: bool) -> Affine | None:
        extent = unconditional_extent(loop.extent)
        # The body may change what the range reads; then the end that is computed later is another one.
        if not self._point.is_stable(loop.start, extent):
            return None
        start = affine_of(loop.start)
        return start + affine_of(extent) - ONE_FORM if up else start

    def _end_of_product(self, atom: Binary, loop: For, *, up: bool) -> Affine | None:
        """Return a bound of a product in which one factor varies with the loop and the others are
        non-negative."""
        factors = factors_of(atom)
        moving = [factor for factor in factors if loop.var in free_vars(factor)]
        others = [factor for factor in factors if loop.var not in free_vars(factor)]
        # i * j with both varying has its extremes at any corner, and a negative factor exchanges the ends.
        if len(moving) != 1 or not all(map(self._point.prover.proves_nonnegative, others)):
            return None
        result = self._end_of_atom(moving[0], loop, up=up)
        for factor in others:
            result = result and multiply(result, affine_of(factor))
        return result

    def _end_of_division(
        self, atom: Binary, loop: For, divisor: int | None, *, up: bool
    ) -> Affine | None:
        """Return the end of a quotient, which is monotone in the dividend, or of a remainder, by its
        divisor."""
        # The sign of an unknown divisor decides about the direction.
        if divisor is None or divisor <= 0:
            return None
        # Not monotone: only the range of a remainder is known.
        if atom.op == "floormod":
            return Affine({}, divisor - 1 if up else 0)
        inner = self._end(affine_of(atom.lhs), loop, up=up)
        return inner and affine_of(floordiv(expr_of(inner), atom.rhs))

    def _end_of_load(self, load: Load, loop: For, *, up: bool) -> Affine | None:
        """Return the end of a load: the load at the end of its index if the array never decreases, otherwise
        the end of the range that a fact gives for the array."""
        *outer, last = load.indices
        # Another outer index is another row, whose elements are not ordered with those of this one.
        is_fixed = all(loop.var not in free_vars(at) for at in outer) and load.predicate is None
        inner = self._end(affine_of(last), loop, up=up)
        is_monotone = self._facts.holds(load.buffer, Monotone)
        length = self._lengths.get(load.buffer) if is_monotone else None
        if length is not None and is_fixed and inner is not None:
            # Clamped: the end of the range may be one past the last element, as in an empty row at the end.
            index = expr_of(self.within(inner, inner, length)[up])
            return affine_of(widen(Load(load.buffer, (*outer, index), load.dtype)))
        bounds = self._facts.last(load.buffer, InRange)
        if bounds is None:
            return None
        return affine_of(bounds.high) - ONE_FORM if up else affine_of(bounds.low)


def _enclosing_bindings(function: Function, body: tuple[Stmt, ...]) -> list[Stmt]:
    """Return the loops, blocks and lets around a body that bind the variables it depends on, outermost
    first."""
    inside = bound_vars(body)
    needed = {name for stmt in body for name in free_vars(stmt)} - inside
    path: list[Stmt] = []
    # Backwards, so that the variables on which a needed range depends are still found before it.
    for stmt in reversed(list(stmts(function.body))):
        if needed & set(vars_bound(stmt)):
            path.append(stmt)
            needed |= _range_vars(stmt) - inside
    return path[::-1]


def _range_vars(stmt: Stmt) -> set[str]:
    """Return the variables on which the range of a bound variable depends; for a block, those of its
    domains."""
    domains = [iterator.domain for iterator in stmt.iters] if isinstance(stmt, Block) else []
    parts = domains or effects_of(stmt).evaluates
    return {name for part in parts for name in free_vars(part)}
