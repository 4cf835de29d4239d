"""The location of an element of a sparse buffer, and the conditions under which it is present."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import msgspec

from gossamer_ir.core.build import index, widen
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Cast, Compare, Expr, IfThenElse, Load, Search
from gossamer_ir.traversal.lazy_conjunction import conjunction_with_lazy_reads
from gossamer_ir.traversal.walk import children, contains, walk


class ElementLocation(msgspec.Struct):
    """The positions of an element, and the conditions under which it is present.

    A condition may read memory that exists only if the earlier ones hold, so each is evaluated only then.
    """

    positions: tuple[Expr, ...] = ()
    conditions: tuple[Expr, ...] = ()

    def add(self, *conditions: Expr) -> None:
        """Append the conditions that are not present yet."""
        self.conditions += tuple(
            condition for condition in conditions if condition not in self.conditions
        )

    def present_condition(self) -> Expr | None:
        """Return the conjunction of the conditions; None if the element is always present."""
        result: Expr | None = None
        for condition in reversed(self.conditions):
            result = condition if result is None else conjunction_with_lazy_reads(condition, result)
        return result

    def access_condition(self, indices: Iterable[Expr]) -> Expr | None:
        """Return `present_condition` for an access with these indices.

        The program evaluates all indices of an access, so an index that reads out of bounds must stop it
        even if an earlier condition already fails. Such indices are therefore evaluated first.
        """
        if not self.conditions:
            return None
        evaluated = [loading for index in indices for loading in _parts_with_loads(index)]
        if evaluated:
            first = tuple(walk(self.conditions[0]))
            checks = dict.fromkeys(_evaluation_of(load) for load in evaluated if load not in first)
            return ElementLocation(conditions=(*checks, *self.conditions)).present_condition()
        return self.present_condition()


# Other expressions: those that read memory fail the test of `READS`.
def _parts_with_loads(expr: Expr) -> Iterator[Expr]:
    """Yield the parts of an index that load from memory. A search counts by its operands only: the search
    itself finds nothing where there is no fiber."""
    if not contains(Load, expr):
        return
    if isinstance(expr, IfThenElse) or not contains(Search, expr):
        yield expr
        return
    for part in children(expr):
        yield from _parts_with_loads(cast(Expr, part))


def _evaluation_of(expr: Expr) -> Expr:
    """Return a condition that always holds, but whose evaluation evaluates the expression."""
    value = widen(expr) if "int" in dtype_of(expr) else Cast("int64", expr)
    return Compare("ge", value, index(-(2**63)))
