"""The bounds checks before one statement."""

from __future__ import annotations

from collections import defaultdict

from gossamer_ir.core.conditions import (
    ShortCircuit,
    as_short_circuit,
    conjunction,
    conjuncts,
    short_circuit_or,
)
from gossamer_ir.nodes import Expr, Guard


class CheckList(list[Guard]):
    """The guards before one statement, each part of a bounds check only once.

    >>> from gossamer_ir.core import build
    >>> from gossamer_ir.nodes import Compare
    >>> checks, inside = CheckList(), Compare("lt", build.index_var("i"), build.index_var("n"))
    >>> checks.require(inside, None, "X")
    >>> checks.require(inside, None, "X")
    >>> len(checks)
    1
    """

    def __init__(self) -> None:
        super().__init__()
        self._stated: defaultdict[Expr, list[Expr | None]] = defaultdict(list)
        """The conditions of the guards, each with its exceptions (`unless`)."""

    def require(self, condition: Expr, unless: Expr | None, buffer_name: str) -> None:
        """Append a guard of the parts that no guard in the list checks. Without this, the guards of
        nested indirect indices would grow exponentially."""
        parts = [part for part in conjuncts(condition) if not self._is_stated(part, unless)]
        unstated = conjunction(*parts)
        if unstated is not None:
            self.append(Guard(short_circuit_or(unless, unstated), buffer_name))
            for part in parts:
                self._stated[part].append(unless)

    def _is_stated(self, part: Expr, unless: Expr | None) -> bool:
        """Return whether guards check the part already unless `unless`, or a prefix of it, holds."""
        exceptions = self._stated.get(part, ())
        while exceptions and unless is not None and unless not in exceptions:
            match as_short_circuit(unless):
                case ShortCircuit("or", first, _):
                    unless = first
                case _:
                    unless = None
        return unless in exceptions
