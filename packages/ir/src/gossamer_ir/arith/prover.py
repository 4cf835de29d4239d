"""A prover of integer affine inequalities, for bounds and for legality.

`Prover` collects the conditions that hold at a point of a program and answers queries about it;
`elimination` searches for the proofs. All values are unbounded integers. A caller that asks about
machine integers must make sure that they do not wrap. "Not proved" never means "false".
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TypeAlias

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.arith.elimination import Eliminator
from gossamer_ir.arith.inequalities import as_nonnegative, negate_condition, widened_sides
from gossamer_ir.core.build import ONE, index_var, integer_value
from gossamer_ir.core.conditions import with_operators
from gossamer_ir.nodes import Binary, Compare, Const, Expr, Fact, IfThenElse, Unary
from gossamer_support.bounded_dict import put_bounded

_Query: TypeAlias = tuple[int, int, tuple[tuple[Expr, int], ...]]
"""The state of the constraints, and the constant and the terms of the goal, in the order in which the search
takes them: the answer depends on nothing else."""

MAX_ANSWERS = 8192
"""The number of answers that are kept. Passes ask again what earlier passes have asked, and programs are
lowered again with other dtypes and schedules."""

_answers: dict[_Query, bool] = {}


class Prover:
    """Inequalities that hold at a point of a program, and the facts about its index buffers.

    >>> from gossamer_ir.core.build import ZERO
    >>> from gossamer_ir.core.build import index_var
    >>> i, n = index_var("i"), index_var("n")
    >>> prover = Prover()
    >>> with prover.scope():
    ...     prover.assume_range("i", ZERO, n)
    ...     prover.proves(Compare("gt", n, ZERO))
    True
    >>> prover.proves(Compare("gt", n, ZERO))
    False
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._eliminator = Eliminator(facts)
        self._constraints = self._eliminator.constraints

    @property
    def state(self) -> int:
        """A number that identifies the current set of constraints, for callers that cache answers. It differs
        between two places of a program at which the same is assumed: other things may hold there."""
        return self._constraints.addition

    def scope(self) -> AbstractContextManager[None]:
        """Return a context in which constraints may be added; they are retracted at its end."""
        return self._eliminator.scope()

    def assume_nonnegative(self, expr: Expr) -> None:
        """Assume expr >= 0 from here on."""
        self._constraints.add(affine_of(expr))

    def assume_range(self, var_name: str, start: Expr, extent: Expr) -> None:
        """Assume start <= var < start + extent from here on.

        An extent of the form `extent if condition else 0` also gives the condition, since the variable has no
        value without it.
        """
        # The variable exists, so the loop has an iteration,
        # so the condition that guards its extent is true.
        while isinstance(extent, IfThenElse) and integer_value(extent.if_false) == 0:
            self.assume(extent.condition)
            extent = extent.if_true
        var = index_var(var_name)
        self.assume_nonnegative(Binary("sub", var, start))
        last = Binary("sub", Binary("add", start, extent), ONE)
        self.assume_nonnegative(Binary("sub", last, var))

    def assume(self, condition: Expr) -> None:
        """Assume a condition; the parts that are not comparisons of integers are ignored."""
        self._eliminator.begin()
        self._eliminator.assume(condition)

    def proves_nonnegative(self, expr: Expr) -> bool:
        """Return whether expr >= 0 is proved."""
        goal = affine_of(expr)
        # The state is part of the key: the same goal may be provable under more constraints.
        query = self._constraints.state, goal.constant, (*goal.terms.items(),)
        answer = _answers.get(query)
        if answer is None:
            answer = self._eliminator.proves(goal)
            put_bounded(_answers, query, answer, limit=MAX_ANSWERS)
        return answer

    def proves_in_range(self, expr: Expr, extent: Expr) -> bool:
        """Return whether 0 <= expr < extent is proved.

        >>> from gossamer_ir.core.build import ZERO
        >>> from gossamer_ir.nodes import InRange, Load
        >>> n, nnz = index_var("n"), index_var("nnz")
        >>> column = Load("J_indices", (index_var("p"),), "int64")
        >>> Prover([InRange("J_indices", ZERO, n)]).proves_in_range(column, n)
        True
        >>> Prover().proves_in_range(column, n)
        False
        """
        upper = Binary("sub", Binary("sub", extent, expr), ONE)
        return self.proves_nonnegative(expr) and self.proves_nonnegative(upper)

    def proves(self, condition: Expr) -> bool:
        """Return whether a condition made of comparisons of integers is proved.

        >>> from gossamer_ir.core.build import ZERO, index
        >>> i, n = index_var("i"), index_var("n")
        >>> below, rounded = Compare("lt", i, n), Binary("floordiv", i, index(4))
        >>> prover = Prover()
        >>> prover.assume_range("i", ZERO, n)
        >>> prover.proves(Binary("and", below, Compare("le", rounded, i)))
        True
        >>> prover.proves(Compare("lt", rounded, i))  # false for i = 0
        False
        """
        match with_operators(condition):
            case Const(text=text):
                return text == "True"
            case Binary(op="and", lhs=lhs, rhs=rhs):
                # rhs needs to hold only where lhs does: in `0 <= i and P[i] >= 0`, the fact about P needs
                # the first.
                return self.proves(lhs) and self._proves_under(lhs, rhs)
            case Binary(op="or", lhs=lhs, rhs=rhs):
                # The second operand needs to hold only where the first fails.
                return self.proves(lhs) or self._proves_under(Unary("not", lhs), rhs)
            case Unary(op="not", operand=operand):
                opposite = negate_condition(operand)
                return opposite is not None and self.proves(opposite)
            case Compare() as comparison:
                return self._proves_comparison(comparison)
        return False

    def _proves_under(self, premise: Expr, condition: Expr) -> bool:
        with self.scope():
            self.assume(premise)
            return self.proves(condition)

    def _proves_comparison(self, condition: Compare) -> bool:
        sides = widened_sides(condition)
        if sides is None:
            return False
        lhs, rhs = sides
        match condition.op:
            case "eq":
                apart = Binary("sub", lhs, rhs)
                return self.proves_nonnegative(apart) and self.proves_nonnegative(
                    Binary("sub", rhs, lhs)
                )
            case "ne":
                less, greater = as_nonnegative("lt", lhs, rhs), as_nonnegative("gt", lhs, rhs)
                # A proof that the sides differ without knowing which is greater is not possible
                # with one inequality.
                return self.proves_nonnegative(less) or self.proves_nonnegative(greater)
            case op:
                return self.proves_nonnegative(as_nonnegative(op, lhs, rhs))
