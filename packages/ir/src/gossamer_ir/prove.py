"""A small prover of integer-affine inequalities, for bounds and for legality.

A goal `g >= 0` is proved by finding non-negative multiples of known inequalities `h >= 0` that leave
a non-negative constant (Fourier-Motzkin elimination, one atom at a time, innermost atom first).
Knowledge about an atom is made when the atom is met: the facts of an index buffer, the bounds of a
quotient, remainder, minimum or maximum. "Not proved" never means "false".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd

from gossamer_ir import build
from gossamer_ir.affine import Affine, affine_of, combine, scale
from gossamer_ir.nodes import (
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    Fact,
    IfThenElse,
    InRange,
    Load,
    Monotone,
    Search,
    Var,
    VScale,
)
from gossamer_ir.walk import free_vars

MAX_STEPS = 400
MAX_DEPTH = 9


class Prover:
    """Inequalities that hold at a point of a program, and the facts about its index buffers."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._hypotheses: list[Affine] = []
        self._ranges = {fact.buffer: fact for fact in facts if isinstance(fact, InRange)}
        self._monotone = {fact.buffer for fact in facts if isinstance(fact, Monotone)}

    def mark(self) -> int:
        """How many inequalities are known; `release` goes back to it."""
        return len(self._hypotheses)

    def release(self, mark: int) -> None:
        """Forgets what was assumed after the mark."""
        del self._hypotheses[mark:]

    def assume_nonnegative(self, expr: Expr) -> None:
        """From here on, expr >= 0 holds."""
        self._hypotheses.append(affine_of(expr))

    def assume_range(self, var: str, start: Expr, extent: Expr) -> None:
        """From here on, start <= var < start + extent holds."""
        while isinstance(extent, IfThenElse) and build.integer_value(extent.if_false) == 0:
            self.assume(extent.condition)
            extent = extent.if_true
        variable = build.index_var(var)
        self.assume_nonnegative(Binary("sub", variable, start))
        last = Binary("sub", Binary("add", start, extent), build.ONE)
        self.assume_nonnegative(Binary("sub", last, variable))

    def assume(self, condition: Expr) -> None:
        """A condition holds; what is no affine comparison is ignored."""
        match condition:
            case Binary(op="and"):
                self.assume(condition.lhs)
                self.assume(condition.rhs)
            case IfThenElse(if_false=Const(text="False")):
                self.assume(condition.condition)
                self.assume(condition.if_true)
            case Compare(op="eq") if build.dtype_of(condition.lhs) == "int64":
                self.assume_nonnegative(Binary("sub", condition.lhs, condition.rhs))
                self.assume_nonnegative(Binary("sub", condition.rhs, condition.lhs))
            case Compare(op="ne") if build.dtype_of(condition.lhs) == "int64":
                self._assume_apart(condition.lhs, condition.rhs)
            case Compare() if build.dtype_of(condition.lhs) == "int64":
                found = _as_nonnegative(condition)
                if found is not None:
                    self.assume_nonnegative(found)

    def _assume_apart(self, lhs: Expr, rhs: Expr) -> None:
        """Two values differ: one that is known to be no greater is less."""
        for low, high in ((lhs, rhs), (rhs, lhs)):
            apart = Binary("sub", high, low)
            if self.proves_nonnegative(apart):
                self.assume_nonnegative(Binary("sub", apart, build.ONE))
                return

    def proves_nonnegative(self, expr: Expr) -> bool:
        """Whether expr >= 0 is proved."""
        return self._proves(affine_of(expr))

    def proves_in_range(self, expr: Expr, extent: Expr) -> bool:
        """Whether 0 <= expr < extent is proved."""
        upper = Binary("sub", Binary("sub", extent, expr), build.ONE)
        return self.proves_nonnegative(expr) and self.proves_nonnegative(upper)

    def proves(self, condition: Expr) -> bool:
        """Whether an integer comparison (or a conjunction of them) is proved."""
        match condition:
            case Binary(op="and"):
                return self.proves(condition.lhs) and self.proves(condition.rhs)
            case Compare(op="eq"):
                difference = affine_of(Binary("sub", condition.lhs, condition.rhs))
                return difference.is_constant and difference.constant == 0
            case Compare():
                goal = _as_nonnegative(condition)
                return goal is not None and self.proves_nonnegative(goal)
        return False

    def _proves(self, goal: Affine) -> bool:
        budget = [MAX_STEPS]
        return self._search(goal, MAX_DEPTH, budget)

    def _search(self, goal: Affine, depth: int, budget: list[int]) -> bool:
        if goal.is_constant:
            return goal.constant >= 0
        if depth == 0 or budget[0] <= 0:
            return False
        budget[0] -= 1
        atom = self._innermost(goal)
        coefficient = goal.terms[atom]
        cases = _cases(atom, is_least=coefficient > 0)
        if cases and all(
            self._search(_with_value(goal, atom, case), depth - 1, budget) for case in cases
        ):
            return True
        for known in self._knowledge(atom, goal):
            other = known.terms.get(atom, 0)
            if other * coefficient <= 0:
                continue
            divisor = gcd(other, coefficient)
            scaled = _scaled_goal(goal, abs(other) // divisor)
            rest = combine(scaled, known, -(abs(coefficient) // divisor))
            if self._search(rest, depth - 1, budget):
                return True
        return False

    def _innermost(self, goal: Affine) -> Expr:
        """The atom bound last, so that what it depends on is met afterwards; sizes come last.

        A load or a quotient is met just before the variables in it.
        """
        return max(goal.terms, key=self._rank)

    def _rank(self, atom: Expr) -> tuple[int, bool]:
        is_compound = not isinstance(atom, Var)
        depth = max((self._depth(name) for name in free_vars(atom)), default=0)
        return depth, is_compound

    def _depth(self, name: str) -> int:
        """When a variable was last bounded from above, counted from 1; 0 for a size."""
        variable = build.index_var(name)
        for at in range(len(self._hypotheses), 0, -1):
            if self._hypotheses[at - 1].terms.get(variable, 0) < 0:
                return at
        return 0

    def _knowledge(self, atom: Expr, goal: Affine) -> Iterator[Affine]:
        for known in reversed(self._hypotheses):
            if atom in known.terms:
                yield known
        inner = atom.value if isinstance(atom, Cast) else atom
        if isinstance(inner, Load):
            yield from self._about_load(atom, inner, goal)
        elif isinstance(inner, VScale):
            yield Affine({atom: 1}, -1)
        elif isinstance(inner, Binary) and inner.op == "mul":
            if self.proves_nonnegative(inner.lhs) and self.proves_nonnegative(inner.rhs):
                yield Affine({atom: 1}, 0)
        elif isinstance(inner, Binary):
            yield from _about_binary(atom, inner)

    def _about_load(self, atom: Expr, load: Load, goal: Affine) -> Iterator[Affine]:
        if load.buffer in self._monotone:
            yield from self._neighbours(atom, load, goal)
        found = self._ranges.get(load.buffer)
        if found is not None:
            yield affine_of(Binary("sub", atom, found.low))
            yield affine_of(Binary("sub", Binary("sub", found.high, build.ONE), atom))

    def _neighbours(self, atom: Expr, load: Load, goal: Affine) -> Iterator[Affine]:
        for other in goal.terms:
            inner = other.value if isinstance(other, Cast) else other
            if other is atom or not isinstance(inner, Load) or inner.buffer != load.buffer:
                continue
            if inner.indices[:-1] != load.indices[:-1]:
                continue
            apart = Binary("sub", load.indices[-1], inner.indices[-1])
            if self.proves_nonnegative(apart):
                yield affine_of(Binary("sub", atom, other))
            if self.proves_nonnegative(Binary("sub", inner.indices[-1], load.indices[-1])):
                yield affine_of(Binary("sub", other, atom))


def _cases(atom: Expr, *, is_least: bool) -> tuple[Expr, ...]:
    """Expressions of which one is the least (or the greatest) value of an atom; none if not known."""
    match atom:
        case Search(kind="exact"):
            absent = build.index(-1)
            return (absent,) if is_least else (absent, build.sub(atom.end, build.ONE))
        case Search():
            return (atom.begin,) if is_least else (atom.begin, atom.end)
        case Binary(op="min") if is_least:
            return (atom.lhs, atom.rhs)
        case Binary(op="max") if not is_least:
            return (atom.lhs, atom.rhs)
    return ()


def _with_value(goal: Affine, atom: Expr, value: Expr) -> Affine:
    rest = Affine({term: c for term, c in goal.terms.items() if term != atom}, goal.constant)
    return combine(rest, affine_of(value), goal.terms[atom])


def _scaled_goal(goal: Affine, factor: int) -> Affine:
    """A goal times a factor: of integers, g >= 0 follows from factor * g >= 1 - factor."""
    scaled = scale(goal, factor)
    return Affine(scaled.terms, scaled.constant + factor - 1)


def _as_nonnegative(condition: Compare) -> Expr | None:
    lhs, rhs = condition.lhs, condition.rhs
    match condition.op:
        case "lt":
            return Binary("sub", Binary("sub", rhs, lhs), build.ONE)
        case "le":
            return Binary("sub", rhs, lhs)
        case "gt":
            return Binary("sub", Binary("sub", lhs, rhs), build.ONE)
        case "ge":
            return Binary("sub", lhs, rhs)
    return None


def _about_binary(atom: Expr, inner: Binary) -> Iterator[Affine]:
    """Inequalities of a quotient, remainder, minimum or maximum."""
    lhs, rhs = inner.lhs, inner.rhs
    divisor = build.integer_value(rhs)
    if inner.op == "floordiv" and divisor is not None and divisor > 0:
        multiple = build.mul(atom, rhs)
        yield affine_of(Binary("sub", lhs, multiple))
        yield affine_of(Binary("sub", Binary("add", multiple, build.index(divisor - 1)), lhs))
    elif inner.op == "floormod" and divisor is not None and divisor > 0:
        yield Affine({atom: 1}, 0)
        yield Affine({atom: -1}, divisor - 1)
    elif inner.op in ("min", "max"):
        for side in (lhs, rhs):
            difference = Binary("sub", side, atom)
            yield scale(affine_of(difference), 1 if inner.op == "min" else -1)
