"""Reports the bounds-checked accesses of a flat module: their places and unproved conditions."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.statement_kinds import CHECKING_STMTS, LOOPS, effects_of
from gossamer_ir.nodes import Expr, Module, Stmt
from gossamer_ir.traversal.statement_queries import condition_after, vars_bound
from gossamer_ir.traversal.walk import contains


class BoundsCheck(msgspec.Struct, frozen=True):
    """An access that is not proved in bounds."""

    function: str
    buffer: str
    """The buffer that is accessed."""
    conditions: tuple[Expr, ...]
    """The kernel stops unless all of them hold."""
    loops: tuple[str | None, ...]
    """The variables of the enclosing loops in `function`, outermost first; None for a while loop."""
    is_inner: bool
    """True if the innermost loop contains no other loop."""


def bounds_checks_of(module: Module) -> tuple[BoundsCheck, ...]:
    """Return the bounds checks of a flat module, in the order of its text.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_lower.pipelines.lower_to_flat import lower_to_flat
    >>> flat = lower_to_flat(program("for i in T.serial(n): Y[i] = X[P[i]]"))
    >>> [(check.buffer, check.loops, check.is_inner) for check in bounds_checks_of(flat)]
    [('X', ('i',), True)]
    >>> bounds_checks_of(lower_to_flat(program("for i in T.serial(n): Y[i] = X[i]")))
    ()
    """
    return tuple(
        check
        for function in module.functions
        for check in _bounds_checks_of(function.body, function.name, (), is_inner=False)
    )


def _bounds_checks_of(
    body: tuple[Stmt, ...], function: str, loops: tuple[str | None, ...], *, is_inner: bool
) -> Iterator[BoundsCheck]:
    for stmt in body:
        if isinstance(stmt, CHECKING_STMTS):
            conditions = tuple(conjuncts(condition_after(stmt)))
            yield BoundsCheck(function, stmt.buffer, conditions, loops, is_inner)
        around, innermost = loops, is_inner
        for inside in effects_of(stmt).bodies:
            if isinstance(stmt, LOOPS):
                around = (*loops, *(vars_bound(stmt) or (None,)))
                innermost = not contains(LOOPS, *inside.stmts)
            yield from _bounds_checks_of(inside.stmts, function, around, is_inner=innermost)
