"""The positions of one access along the axes of its buffer, those of nested look-ups as variables."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.nodes import Expr
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_lower.axes.element_location import ElementLocation
from gossamer_lower.iterations.nests.lookup_lets import LookupLets, has_search


class AccessPositions:
    """The positions that are known, in the order of the axes. `location` has the conditions so far."""

    def __init__(self, lets: LookupLets, conditions: Iterable[Expr]) -> None:
        self.location = ElementLocation(conditions=tuple(conditions))
        self._lets = lets
        self._positions: dict[str, Expr] = {}
        self._preceding: dict[str, int] = {}
        self._has_lets = False

    def along(self, names: Iterable[str]) -> tuple[Expr, ...]:
        """Return the positions along these axes."""
        return tuple(self._positions[name] for name in names)

    def bound_along(self, names: Iterable[str]) -> tuple[Expr, ...]:
        """Return the positions along these axes; those that searches find, as variables of lets."""
        names = tuple(names)
        for name in names:
            if has_search(self._positions[name]):
                self._bind(name)
        return self.along(names)

    def begin(self, name: str) -> None:
        """Record that the conditions from here on are those of the position along an axis."""
        self._preceding[name] = len(self.location.conditions)

    def add(self, name: str, position: Expr) -> None:
        """Add the position along the next axis."""
        self._positions[name] = position

    def whole(self) -> ElementLocation:
        """Return the location of the element."""
        # Below the variables of lets, a search is one of several as well.
        names = self._positions if self._has_lets else ()
        self.location.positions = self.bound_along(names) if names else self.along(self._positions)
        return self.location

    def _bind(self, name: str) -> None:
        """Replace the position along an axis by a variable, also where it occurs in what came after it."""
        position, begin = self._positions[name], self._preceding[name]
        # That an element above was found implies the conditions before it. They are repeated, since bounds
        # are proved from them.
        preceding, rest = self.location.conditions[:begin], self.location.conditions[begin:]
        var = self._lets.bind_position(position, preceding, name)
        self._has_lets = True

        def replace_position(expr: Expr) -> Expr:
            result: Expr = rewrite(expr, lambda node: var if node == position else None)
            return result

        names = list(self._positions)
        for later in names[names.index(name) :]:
            self._positions[later] = replace_position(self._positions[later])
        self.location.conditions = (*preceding, *map(replace_position, rest))
