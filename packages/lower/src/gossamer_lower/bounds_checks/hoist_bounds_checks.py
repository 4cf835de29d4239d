"""Hoists the bounds check of an index that is affine in a loop variable before the loop.

The index is monotone in the loop variable, so all elements accessed lie between those of the first and the
last iteration. Both are accessed: the check before the loop stops the kernel if and only if one inside would
have, and it does so before the loop has any effect.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer_ir.analysis.accesses.linear_form import coefficient_and_rest
from gossamer_ir.arith.affine import affine_of, expr_of
from gossamer_ir.core.build import ONE, ZERO, add, floordiv, integer_value, mul, sub
from gossamer_ir.core.conditions import conjunction, conjuncts, short_circuit_implication
from gossamer_ir.core.statement_kinds import CHECKING_STMTS
from gossamer_ir.nodes import Binary, Compare, Expr, For, Function, Guard, Module, Search, Stmt
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.walk import contains
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import with_body


@lowering_pass(
    takes=("loop",),
    acts_on="bounds checks",
    without=("blocks",),
    after={"insert_bounds_checks": "it moves the checks"},
    before={
        "peel_last_iteration": "each copy of a loop would hoist a check of its own",
        "peel_remainder": "a check before the bound of a group keeps the group from being peeled",
    },
)
def hoist_bounds_checks(module: Module) -> Module:
    """Move bounds checks of indices that are affine in a loop variable before the loop.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n):
    ...     for j in T.serial(i):
    ...         T.guard(P[i] + j >= 0 and P[i] + j < n, X)
    ...         Y[i] = Y[i] + X[P[i] + j]
    ... ''')
    >>> print(body_text(hoist_bounds_checks(before)))
    for i in T.serial(n):
        T.guard(T.if_then_else(i > 0, P[i] >= 0 and P[i] <= n - i, True), X)
        for j in T.serial(i):
            Y[i] = Y[i] + X[P[i] + j]
    """
    return map_functions(module, _hoist_function)


# Other statements: stay, and end what may be moved; only a guard is moved or removed.
def _hoist_function(function: Function) -> Function:
    if not contains(Guard, *function.body):
        return function
    hoister = _BoundsCheckHoister(function)
    return with_body(function, hoister.body(function.body))


class _Progression(msgspec.Struct, frozen=True):
    """The indices of the iterations of a loop: `first`, `first + step`, ..., where step >= 0."""

    first: Expr
    step: Expr


class _BoundsCheckHoister(PointVisitor):
    """Moves the guards of inner loops first, so that they may leave several loops."""

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        return self._loop(stmt) if isinstance(stmt, For) else (self.inside(stmt),)

    # Other statements: stay, and end what may be moved; only a guard is moved or removed.
    def _loop(self, loop: For) -> tuple[Stmt, ...]:
        body = self.inside(loop).body
        # Names that are bound inside do not exist before the loop.
        inner = frozenset((*bound_vars(body), *buffers_allocated(body)))
        leaving: dict[Guard, None] = {}
        kept: list[Stmt] = []
        is_first = True
        for stmt in body:
            # Only a prefix of guards leaves. A guard after one that stays might read, in its own
            # condition, what the one that stays protects.
            new = self._outside(stmt, loop, inner) if isinstance(stmt, Guard) and is_first else None
            if new is None:
                kept.append(stmt)
                is_first = is_first and not isinstance(stmt, CHECKING_STMTS)
            else:
                # A dict, because guards of several copies of one access may become equal
                # before the loop.
                leaving[new] = None
        return (*leaving, with_body(loop, tuple(kept)))

    def _outside(self, guard: Guard, loop: For, inner: frozenset[str]) -> Guard | None:
        """Return the guard before the loop for a guard that each iteration executes; None if there is none.

        No guard that stays in the loop precedes it, so what it reads can be read before the loop as well.
        A guard with a search stays in the loop, where the accesses that need the search share it.
        """
        condition, extent = guard.condition, loop.extent
        if {guard.buffer, *free_vars(condition)} & inner or contains(Search, condition):
            return None
        # The loop may write what the condition reads,
        # and then each iteration has another condition.
        if not self.point.is_stable(condition, loop.start, extent):
            return None
        parts = self._parts(tuple(conjuncts(condition)), loop)
        every = None if parts is None else conjunction(*parts)
        if every is None:
            return None
        count = integer_value(extent)
        # A loop without iterations checks nothing,
        # so the hoisted guard must not stop the kernel either.
        if count is None or count <= 0:
            every = short_circuit_implication(Compare("gt", extent, ZERO), every)
        return Guard(every, guard.buffer)

    def _parts(self, parts: tuple[Expr, ...], loop: For) -> list[Expr] | None:
        """Return conditions before the loop that are equivalent to the parts in all its iterations."""
        result: list[Expr] = []
        indices: dict[Expr, None] = {}
        for part in parts:
            if loop.var not in free_vars(part):
                result.append(part)
            elif isinstance(part, Compare) and part.op == "ge" and part.rhs == ZERO:
                # `index >= 0` alone cannot be moved: it is covered by the `<` of the same index,
                # which must follow.
                indices[part.lhs] = None
            elif isinstance(part, Compare) and part.op == "lt":
                progression = self._progression(part.lhs, loop)
                if progression is None or not self._fits(progression, loop, part.rhs):
                    return None
                indices.pop(part.lhs, None)
                result += _range_conditions(progression, loop.extent, part.rhs)
            else:
                return None
        # A lower bound without its upper bound remains: the index might wrap between the two ends.
        return None if indices else result

    def _progression(self, index: Expr, loop: For) -> _Progression | None:
        parts = coefficient_and_rest(affine_of(index), loop.var)
        if parts is None:
            return None
        step, rest = parts
        stride = expr_of(step)
        # With a negative step, the first iteration has the largest index,
        # and the conditions differ.
        if not self.point.is_nonnegative(stride):
            return None
        first = rest + affine_of(mul(stride, loop.start))
        return _Progression(expr_of(first), stride)

    def _fits(self, progression: _Progression, loop: For, size: Expr) -> bool:
        """Return whether the size is loop invariant and nothing can overflow, except the index itself, which
        may, inside the loop as outside."""
        if loop.var in free_vars(size) or not self.point.is_stable(size):
            return False
        # These are what `_range_conditions` computes; size + 1 must fit so that `size - 1 - first`
        # cannot wrap.
        parts = (progression.step, sub(size, loop.extent), add(size, ONE))
        return self.point.is_exact(*parts)


def _range_conditions(progression: _Progression, extent: Expr, size: Expr) -> Iterator[Expr]:
    """Yield the conditions that the indices of `extent` > 0 iterations lie in a dimension."""
    yield Compare("ge", progression.first, ZERO)
    # first + (extent - 1) < size, written without the sum, which may overflow for a large first.
    if progression.step == ONE:
        yield Compare("le", progression.first, sub(size, extent))
        return
    yield Compare("lt", progression.first, size)
    room = Binary("sub", sub(size, ONE), progression.first)
    # first + step * (extent - 1) < size as a quotient: the product may overflow. A single iteration
    # has extent - 1 == 0, for which the step does not matter.
    steps = floordiv(room, sub(extent, ONE))
    yield short_circuit_implication(
        Compare("gt", extent, ONE), Compare("le", progression.step, steps)
    )
