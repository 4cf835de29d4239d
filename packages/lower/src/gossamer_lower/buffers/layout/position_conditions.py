"""Conditions that a position lies in its fiber, each with a sufficient condition that may be proved."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer_ir.core.build import ZERO
from gossamer_ir.core.conditions import ShortCircuit, as_short_circuit, short_circuit_conjuncts
from gossamer_ir.nodes import Compare, Expr


class ProofGoal(msgspec.Struct, frozen=True):
    """A sufficient condition for a comparison: the index lies in [0, extent), or `known` holds."""

    index: Expr
    extent: Expr
    known: Expr | None = None


class PositionConditions(dict[Expr, ProofGoal]):
    """The comparisons of positions with the ends of their fibers, each with a way to prove it.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.core.conditions import conjunction
    >>> conditions, i, n = PositionConditions(), index_var("i"), index_var("n")
    >>> inside = conjunction(conditions.compare("ge", i, n), conditions.compare("lt", i, n))
    >>> conditions.are_recorded(inside), conditions.are_recorded(Compare("lt", n, i))
    (True, False)
    """

    def compare(self, op: Literal["ge", "lt"], index: Expr, extent: Expr) -> Compare:
        """Return the comparison of an index with 0, or with an extent, and record how to prove it."""
        return self.with_alternative_proof(ProofGoal(index, extent), op, index, extent)

    def with_alternative_proof(
        self, goal: ProofGoal, op: Literal["ge", "lt"], index: Expr, extent: Expr
    ) -> Compare:
        """Return the comparison as `compare` does, with another way to prove it."""
        compared = Compare(op, index, ZERO if op == "ge" else extent)
        self[compared] = goal
        return compared

    def are_recorded(self, condition: Expr) -> bool:
        """Return whether a condition consists of recorded comparisons only."""
        return all(map(self._is_recorded, short_circuit_conjuncts(condition)))

    def _is_recorded(self, condition: Expr) -> bool:
        match as_short_circuit(condition):
            case ShortCircuit("or", _, second):
                return self.are_recorded(second)
        return condition in self
