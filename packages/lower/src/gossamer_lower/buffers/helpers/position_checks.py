"""Comparisons that check positions, each with its sufficient condition."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer_ir.core import build
from gossamer_ir.core.conditions import ShortCircuit, as_short_circuit, short_circuit_conjuncts
from gossamer_ir.nodes import Compare, Expr


class Check(msgspec.Struct, frozen=True):
    """A sufficient condition for a comparison: the index lies in [0, extent), or `known` holds."""

    index: Expr
    extent: Expr
    known: Expr | None = None


class PositionChecks(dict[Expr, Check]):
    """The comparisons that check positions, each with a way to prove it.

    >>> from gossamer_ir.core.conditions import conjunction
    >>> checks, i, n = PositionChecks(), build.index_var("i"), build.index_var("n")
    >>> inside = conjunction(checks.compare("ge", i, n), checks.compare("lt", i, n))
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
        return all(map(self._is_check, short_circuit_conjuncts(condition)))

    def _is_check(self, condition: Expr) -> bool:
        match as_short_circuit(condition):
            case ShortCircuit("or", _, second):
                return self.are_checks(second)
        return condition in self
