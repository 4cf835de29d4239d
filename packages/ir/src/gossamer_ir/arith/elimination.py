"""Fourier-Motzkin elimination: the search for a proof of one affine inequality.

A goal `g >= 0` is proved by non-negative multiples of known inequalities `h >= 0` that leave a
non-negative constant. Atoms are eliminated one at a time, innermost first. The search starts from the
goal, so that only inequalities about its atoms are generated; full elimination of all constraints would
be exponential. Inequalities about an atom are derived when the search reaches it: facts of index arrays,
bounds of quotients, remainders, minima and maxima.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from gossamer_ir.arith.affine import (
    ONE_FORM,
    Affine,
    affine_of,
    combine,
    expr_of,
    multiplier_of,
    multiply,
    scale,
    shared_factors,
)
from gossamer_ir.arith.atom_inequalities import AtomInequalities, has_constant_form
from gossamer_ir.arith.constraints import VSCALE, Constraints
from gossamer_ir.arith.goals import eliminate_atom, normalized_goal, with_value, without_atom
from gossamer_ir.arith.index_array_facts import IndexArrayFacts
from gossamer_ir.arith.inequalities import implied_forms
from gossamer_ir.arith.nonaffine_bounds import ConditionalBound, cases_of, strip_widening
from gossamer_ir.core.build import ONE
from gossamer_ir.nodes import Binary, Expr, Fact, Load, Var
from gossamer_ir.traversal.free_vars import free_vars

MAX_STEPS = 400
"""Goals that one proof may visit, subgoals of side conditions included. The search is exponential in its
depth; this bound makes every query end soon, proved or not."""
MAX_ELIMINATIONS = 9
"""Atoms that may be eliminated one after another."""
MAX_SIDE_CONDITIONS = 6
"""Depth of side conditions that themselves need side conditions."""
MAX_ALTERNATIVES = 3
"""Atoms that are tried first at the start of a proof. Deeper goals try only the highest-ranked atom."""


_Goal: TypeAlias = tuple[int, int, frozenset[tuple[Expr, int]]]
"""The state of the constraints, the depth of nesting, and the terms of the goal."""


class _Assumptions(AbstractContextManager[None]):
    """Retracts at its end what was assumed in it. A class, which is cheaper to enter than a generator:
    proofs open many scopes."""

    def __init__(self, constraints: Constraints) -> None:
        self._constraints = constraints

    def __enter__(self) -> None:
        self._mark = self._constraints.mark()

    def __exit__(self, *raised: object) -> None:
        self._constraints.release(self._mark)


class Eliminator:
    """Proves goals from constraints and from the facts about index arrays.

    >>> from gossamer_ir.core.build import index_var
    >>> i, n = index_var("i"), index_var("n")
    >>> eliminator = Eliminator(())
    >>> goal = affine_of(Binary("sub", n, ONE))
    >>> with eliminator.scope():
    ...     eliminator.constraints.add(affine_of(i))  # i >= 0
    ...     eliminator.constraints.add(Affine({n: 1, i: -1}, -1))  # i < n
    ...     eliminator.proves(goal)
    True
    >>> eliminator.proves(goal)
    False
    """

    def __init__(self, facts: Iterable[Fact]) -> None:
        facts = tuple(facts)
        self.constraints = Constraints(facts)
        self._arrays = IndexArrayFacts(facts, self.constraints, self.holds)
        self._inequalities = AtomInequalities(self.constraints, self._arrays, self.holds)
        self._steps = 0
        self._nesting = 0
        self._failed: dict[_Goal, tuple[int, int]] = {}

    def scope(self) -> AbstractContextManager[None]:
        """Return a context in which constraints may be added; they are retracted at its end."""
        return _Assumptions(self.constraints)

    def begin(self) -> None:
        """Start a new proof, with the full budget."""
        self._steps = MAX_STEPS
        # Failures depend on how much of the budget was left, so the next proof must not reuse them.
        self._failed.clear()

    def proves(self, goal: Affine) -> bool:
        """Return whether goal >= 0 is proved."""
        self.begin()
        # The directed search before the others: it succeeds for nearly all goals,
        # and they restart the budget.
        return (
            self._follows_from_ranges(goal)
            or self._search(goal, MAX_ELIMINATIONS)
            or self._follows_at_once(goal)
            or self._is_below_product(goal)
        )

    def holds(self, expr: Expr) -> bool:
        """Return whether expr >= 0, a side condition of the current proof, is proved within its budget."""
        # A side condition may need the fact that it is a condition of: without a limit, this recurses.
        if self._nesting == MAX_SIDE_CONDITIONS:
            return False
        self._nesting += 1
        result = self._search(affine_of(expr), MAX_ELIMINATIONS)
        self._nesting -= 1
        return result

    def assume(self, condition: Expr) -> None:
        """Add the inequalities that a condition implies, at the expense of the current proof."""
        for form in implied_forms(condition, self.holds):
            self.constraints.add(form)

    def _follows_from_ranges(self, goal: Affine) -> bool:
        """Return whether a goal is proved by bounds of its atoms that are constant, or multiples of vscale.

        Such is the goal that the index of a loop that was split by a constant, or by the lanes of scalable
        vectors, is in bounds. The search finds this last, or not at all, if conditions with more atoms were
        added after the ranges of the loops.
        """
        least = Affine({}, goal.constant)
        for atom, coefficient in goal.terms.items():
            bound = self.constraints.range_bound(atom, is_lower=coefficient > 0)
            if bound is None:
                return False
            least = combine(least, bound, coefficient)
        # It is linear in vscale, so it is least for a vscale of 1 if it does not decrease.
        by_vscale = least.terms.get(VSCALE, 0)
        return by_vscale >= 0 and least.constant + by_vscale >= 0

    def _follows_at_once(self, goal: Affine) -> bool:
        """Return whether one constraint that shares several atoms with the goal leaves a goal that is proved.

        Such is the condition of a loop that was split more than once. The search proceeds atom by atom,
        and may exhaust its steps before it gets there.
        """
        for premise in {id(premise): premise for premise in self._about_several(goal)}.values():
            atom = next(atom for atom in goal.terms if atom in premise.terms)
            left = eliminate_atom(goal, atom, premise)
            # Two atoms fewer: each premise tried gets a new budget, so only ones that simplify much are
            # worth it.
            if left is not None and len(left.terms) <= len(goal.terms) - 2:
                self.begin()
                if self._search(left, MAX_ELIMINATIONS):
                    return True
        return False

    def _is_below_product(self, goal: Affine) -> bool:
        """Return whether a goal is proved with one factor in the place of all its products: for W >= 0 and
        q >= 1, q * W + rest is not less than W + rest.

        Such is the goal that `i * W + w` is less than `m * W`, for a row i and a digit w. Conditions on the
        digit let the search run out of steps before it has found the multiple of W.
        """
        factors = (factor for atom in goal.terms for factor in shared_factors(atom, goal))
        for factor in dict.fromkeys(factors):
            multiplier = multiplier_of(factor, goal)
            rest = multiply(multiplier, affine_of(factor))
            if rest is None:
                continue
            for sign in (expr_of(multiplier - ONE_FORM), factor):
                self.begin()
                if not self.holds(sign):
                    break
            else:
                self.begin()
                left = goal - rest + affine_of(factor)
                if self._search(left, MAX_ELIMINATIONS):
                    return True
        return False

    def _about_several(self, goal: Affine) -> Iterator[Affine]:
        """Yield the constraints that have three or more atoms of a goal."""
        for atom in goal.terms if len(goal.terms) > 2 else ():
            for premise in self.constraints.about(atom):
                if len(premise.terms.keys() & goal.terms.keys()) > 2:
                    yield premise

    def _search(self, goal: Affine, depth: int) -> bool:
        if goal.is_constant:
            return goal.constant >= 0
        if depth == 0 or self._steps <= 0:
            return False
        self._steps -= 1
        # Divided by the content of its terms, with the constant rounded down: 2 x >= 1 becomes x >= 1.
        goal = normalized_goal(goal)
        # Before the cache of failures, because the lookup costs more than this test.
        if self._is_assumed(goal):
            return True
        key = self.constraints.state, self._nesting, frozenset(goal.terms.items())
        tried, constant = self._failed.get(key, (0, 0))
        # A smaller constant is harder to prove, and so is the same goal with less depth.
        if tried >= depth and constant >= goal.constant:
            return False
        is_proved = self._eliminates_any(goal, depth)
        # A success needs no cache: it ends this branch of the search.
        if not is_proved:
            self._failed[key] = depth, goal.constant
        return is_proved

    def _is_assumed(self, goal: Affine) -> bool:
        """Return whether a goal is a constraint, or a constraint plus a constant. Checked first because most
        goals are about the range of one loop."""
        premises = self.constraints.about(next(iter(goal.terms)))
        return any(form.constant <= goal.constant and form.terms == goal.terms for form in premises)

    def _eliminates_any(self, goal: Affine, depth: int) -> bool:
        atoms = list(goal.terms)
        if len(atoms) > 1:
            # Alternatives at every depth would make the search exponential in MAX_ELIMINATIONS.
            choices = MAX_ALTERNATIVES if depth > MAX_ELIMINATIONS - 2 else 1
            atoms = sorted(atoms, key=self._rank, reverse=True)[:choices]
        return any(self._eliminates(atom, goal, depth) for atom in atoms)

    def _eliminates(self, atom: Expr, goal: Affine, depth: int) -> bool:
        """Return whether eliminating one atom of a goal yields goals that are proved."""
        # Variables have neither operands nor facts, only constraints; most atoms are variables.
        if type(atom) is Var:
            return self._follows(self.constraints.about(atom), goal, atom, depth)
        # To prove the goal, a positive term is replaced by its least value, a negative one by its greatest.
        is_positive = goal.terms[atom] > 0
        # First a factor of several products at once, then exact values, then bounds: the earlier
        # ones lose less, and a bound that was lost cannot be regained deeper in the search.
        if any(self._search(rest, depth - 1) for rest in self._without_factor(atom, goal)):
            return True
        if self._holds_in(cases_of(atom, is_lower=is_positive), goal, atom, depth):
            return True
        if self._follows(self._inequalities.about(atom, goal), goal, atom, depth):
            return True
        if any(self._search(rest, depth - 1) for rest in self._multiply_by_divisor(goal, atom)):
            return True
        # The other extreme last: for a maximum with a positive coefficient, the goal must hold on
        # both sides of a case distinction, which doubles the work.
        sides = cases_of(atom, is_lower=not is_positive) if isinstance(atom, Binary) else ()
        return self._holds_in(sides, goal, atom, depth)

    def _follows(self, premises: Iterable[Affine], goal: Affine, atom: Expr, depth: int) -> bool:
        """Return whether eliminating the atom with one of these inequalities yields a goal that is proved."""
        for premise in premises:
            left = eliminate_atom(goal, atom, premise)
            # None: the premise bounds the atom from the wrong side.
            if left is not None and self._search(left, depth - 1):
                return True
        return False

    def _holds_in(
        self, cases: tuple[ConditionalBound, ...], goal: Affine, atom: Expr, depth: int
    ) -> bool:
        """Return whether a goal is proved in every case, with the value that the atom has there."""
        return bool(cases) and all(
            self._holds_under(condition, with_value(goal, atom, value), depth - 1)
            for condition, value in cases
        )

    def _holds_under(self, condition: Expr, goal: Affine, depth: int) -> bool:
        with self.scope():
            self.assume(condition)
            return self._search(goal, depth)

    def _multiply_by_divisor(self, goal: Affine, atom: Expr) -> Iterator[Affine]:
        """Yield a goal times the positive divisor d of its quotient q = x // d, by x - d < q * d <= x."""
        if not isinstance(atom, Binary) or atom.op != "floordiv" or has_constant_form(atom.rhs):
            return
        # Multiplying the goal by a divisor of unknown sign might turn it around.
        if not self.holds(Binary("sub", atom.rhs, ONE)):
            return
        divisor = affine_of(atom.rhs)
        coefficient = goal.terms[atom]
        rest = multiply(without_atom(goal, atom), divisor)
        if rest is not None:
            total = combine(rest, affine_of(atom.lhs), coefficient)
            slack = divisor - ONE_FORM
            yield combine(total, slack, 1 if coefficient < 0 else 1 - coefficient)

    def _rank(self, atom: Expr) -> tuple[int, bool, bool, bool, bool]:
        """Return the sort key of elimination order, highest first.

        Innermost variables come first and sizes last, since the bounds of a variable contain variables
        bound before it. Compound atoms come before their variables, operations before the loads that they
        are made of, remainders before quotients, and prefix sums of products before the products: the
        atoms that an elimination introduces are eliminated after it.
        """
        inner = strip_widening(atom)
        is_sum = isinstance(inner, Load) and self._arrays.has_products(inner.buffer)
        is_compound = not isinstance(atom, Var)
        is_operation = isinstance(atom, Binary)
        is_remainder = isinstance(atom, Binary) and atom.op == "floormod"
        depth = max(map(self.constraints.depth_of, free_vars(atom)), default=0)
        return depth, is_sum, is_compound, is_operation, is_remainder

    def _without_factor(self, atom: Expr, goal: Affine) -> Iterator[Affine]:
        """Yield a goal without a factor that several of its products share.

        If the sum of what multiplies the factor has a known sign, a bound of the factor bounds all these
        products at once. One product after the other would need a sign for each.
        """
        for factor in sorted(shared_factors(atom, goal), key=self._rank, reverse=True):
            multiplier = multiplier_of(factor, goal)
            for sign in (1, -1):
                nonnegative = scale(multiplier, sign)
                if self.holds(expr_of(nonnegative)):
                    yield from self._with_bounded_factor(factor, goal, nonnegative, sign=sign)

    def _with_bounded_factor(
        self, factor: Expr, goal: Affine, multiplier: Affine, *, sign: int
    ) -> Iterator[Affine]:
        """Yield a goal minus each known inequality that has the factor with a sign, times a nonnegative
        multiplier."""
        for premise in self._inequalities.about(factor, goal):
            if premise.terms.get(factor) == sign:
                multiple = multiply(premise, multiplier)
                if multiple is not None:
                    yield goal - multiple
