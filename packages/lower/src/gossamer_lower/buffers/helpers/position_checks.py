"""Comparisons that check positions, each with its sufficient condition."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer_ir.arith.simplify import FALSE, TRUE
from gossamer_ir.core import build
from gossamer_ir.nodes import Binary, Compare, Expr, IfThenElse


class Check(msgspec.Struct, frozen=True):
    """A sufficient condition for a comparison: the index lies in [0, extent), or `known` holds."""

    index: Expr
    extent: Expr
    known: Expr | None = None


class PositionChecks(dict[Expr, Check]):
    """The comparisons that check positions, each with a way to prove it.

    >>> checks, i, n = PositionChecks(), build.index_var("i"), build.index_var("n")
    >>> inside = Binary("and", checks.compare("ge", i, n), checks.compare("lt", i, n))
    >>> checks.are_checks(inside), checks.are_checks(Compare("lt", n, i))
    (True, False)
    """

    def compare(self, op: Literal["ge", "lt"], index: Expr, extent: Expr) -> Compare:
        """Return the comparison of an index with 0, or with an extent, and record how to prove it."""
        return self.proved_by(Check(index, extent), op, index, extent)

    def proved_by(
        self, check: Check, op: Literal["ge", "lt"], index: Expr, extent: Expr
    ) -> Compare:
        """Return the comparison as `compare` does, with another way to prove it."""
        compared = Compare(op, index, build.ZERO if op == "ge" else extent)
        self[compared] = check
        return compared

    def are_checks(self, condition: Expr) -> bool:
        """Return whether a condition consists of recorded checks only."""
        match condition:
            case IfThenElse(condition=first, if_true=second, if_false=other) if other == FALSE:
                return self.are_checks(first) and self.are_checks(second)
            case IfThenElse(if_true=other, if_false=second) if other == TRUE:
                return self.are_checks(second)
            case Binary(op="and", lhs=first, rhs=second):
                return self.are_checks(first) and self.are_checks(second)
        return condition in self
