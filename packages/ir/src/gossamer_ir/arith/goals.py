"""Steps of Fourier-Motzkin elimination on one goal `g >= 0`."""

from __future__ import annotations

from math import gcd

from gossamer_ir.arith.affine import Affine, affine_of, combine, scale
from gossamer_ir.nodes import Expr


def eliminate_atom(goal: Affine, atom: Expr, premise: Affine) -> Affine | None:
    """Return a goal without the atom, by a multiple of a known inequality; None if that does not bound the
    atom on the side that the goal needs.

    >>> from gossamer_ir.core.build import index_var
    >>> i, n = index_var("i"), index_var("n")
    >>> goal = Affine({n: 1, i: -1}, 0)  # n - i >= 0
    >>> eliminate_atom(goal, i, Affine({n: 1, i: -1}, -1)) == Affine({}, 1)  # by i < n
    True
    >>> eliminate_atom(goal, i, Affine({i: 1}, 0))  # i >= 0 bounds i from the other side
    """
    other, coefficient = premise.terms.get(atom, 0), goal.terms[atom]
    # Subtracting a positive multiple of the premise removes the atom only if both signs agree.
    if other * coefficient <= 0:
        return None
    # The smallest multiples: large ones would lose more when the goal is divided again.
    divisor = gcd(other, coefficient)
    scaled = _scaled_goal(goal, abs(other) // divisor)
    return combine(scaled, premise, -(abs(coefficient) // divisor))


def normalized_goal(goal: Affine) -> Affine:
    """Return a goal divided by the common divisor of its coefficients. Over the integers, rounding the
    constant down gives an equivalent goal.

    >>> from gossamer_ir.core.build import index_var
    >>> i = index_var("i")
    >>> normalized_goal(Affine({i: 4}, -3)) == Affine({i: 1}, -1)  # 4 * i >= 3: i >= 1
    True
    """
    divisor = gcd(*goal.terms.values())
    if divisor == 1:
        return goal
    terms = {atom: coefficient // divisor for atom, coefficient in goal.terms.items()}
    return Affine(terms, goal.constant // divisor)


def without_atom(goal: Affine, atom: Expr) -> Affine:
    """Return the terms of a goal other than an atom."""
    return Affine({term: c for term, c in goal.terms.items() if term != atom}, goal.constant)


def with_value(goal: Affine, atom: Expr, value: Expr) -> Affine:
    """Return a goal with an atom replaced by its value."""
    return combine(without_atom(goal, atom), affine_of(value), goal.terms[atom])


def _scaled_goal(goal: Affine, factor: int) -> Affine:
    """Return a goal times a factor: of integers, g >= 0 follows from factor * g >= 1 - factor."""
    scaled = scale(goal, factor)
    return Affine(scaled.terms, scaled.constant + factor - 1)
