"""The lets of look-ups that other look-ups use: each is made once, before the statement that needs it.

A position that a search finds occurs several times in the look-up below it: in the prefix, in the ends of the
fiber, and in the conditions. Without a name, the expressions of nested look-ups would grow exponentially.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import msgspec

from gossamer_ir.core.build import index, zero_of
from gossamer_ir.core.conditions import conjunction, short_circuit_and
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Expr, IfThenElse, Let, Search, Unary, Var
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.walk import collect, contains
from gossamer_lower.axes.element_location import ElementLocation


class _Branch(msgspec.Struct):
    """A condition that selects the expressions that a statement evaluates; a variable once a let binds it."""

    condition: Expr
    is_bound: bool = False


class LookupLets:
    """The lets before the statement that is lowered.

    A let runs even if the statement does not evaluate its value, which may read memory that does not exist
    then. Its value is therefore computed only under the conditions around the look-up (`under`).

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.nodes import Compare
    >>> lets, search = LookupLets(Namer()), Search("exact", "P", (), *map(index_var, "abc"))
    >>> with lets.before_stmt() as before, lets.under(Compare("lt", *map(index_var, "in"))):
    ...     found = lets.bind_position(search, (), "J")
    >>> [(let.var == found, type(let.value).__name__) for let in before]
    [(True, 'IfThenElse')]
    """

    def __init__(self, namer: Namer) -> None:
        self._namer = namer
        self._lets: list[Let] = []
        self._branches: list[tuple[_Branch, bool]] = []

    @contextmanager
    def before_stmt(self) -> Iterator[list[Let]]:
        """Return a context that collects the lets of one statement. Those of statements inside it are
        collected apart: they run only where those statements do."""
        outer = self._lets, self._branches
        self._lets, self._branches = [], []
        yield self._lets
        self._lets, self._branches = outer

    @contextmanager
    def under(self, condition: Expr) -> Iterator[None]:
        """Return a context for expressions that are evaluated only if a condition holds."""
        self._branches.append((_Branch(condition), True))
        yield
        self._branches.pop()

    def lower_branches(self, node: IfThenElse, lower: Callable[[Expr], Expr]) -> IfThenElse:
        """Return an `IfThenElse` with its operands lowered, each where it is evaluated."""
        branch = _Branch(lower(node.condition))
        branches: list[Expr] = []
        for side, is_true in ((node.if_true, True), (node.if_false, False)):
            self._branches.append((branch, is_true))
            branches.append(lower(side))
            self._branches.pop()
        return IfThenElse(branch.condition, *branches)

    def bind(self, value: Expr) -> Var:
        """Return the variable of a let of an index; 0 where it is not evaluated."""
        path = self._path()
        if path is not None:
            value = IfThenElse(path, value, zero_of(dtype_of(value)))
        return self._let(value, "at")

    def bind_position(self, position: Expr, conditions: Iterable[Expr], axis_name: str) -> Var:
        """Return the variable of a let of a position along an axis; -1, as that of an absent element, where
        it is not evaluated or one of the conditions fails."""
        location = ElementLocation()
        path = self._path()
        location.add(*(() if path is None else (path,)), *conditions)
        present = location.present_condition()
        if present is not None:
            position = IfThenElse(present, position, index(-1))
        return self._let(position, f"{axis_name}_at")

    def _let(self, value: Expr, base: str) -> Var:
        for let in self._lets:
            # No statement runs between the lets of one statement, so equal values stay equal.
            if let.value == value:
                return let.var
        let = Let(Var(self._namer.fresh(base), dtype_of(value)), value)
        self._lets.append(let)
        return let.var

    def _path(self) -> Expr | None:
        """Return the conjunction of the conditions around; None if there are none."""
        path: Expr | None = None
        for branch, is_true in self._branches:
            # Bound once, since it becomes part of each let; and evaluated only under those around it.
            if not branch.is_bound and contains(READS, branch.condition):
                branch.condition = self._let(short_circuit_and(path, branch.condition), "holds")
                branch.is_bound = True
            holds = branch.condition if is_true else Unary("not", branch.condition)
            path = conjunction(path, holds)
        return path


def has_search(expr: Expr) -> bool:
    """Return whether an expression contains the search for a coordinate."""
    return any(search.kind == "exact" for search in collect(Search, expr))


def has_lookup(expr: Expr) -> bool:
    """Return whether an expression contains the search for a coordinate, or an `IfThenElse`, which a look-up
    makes between an element and the fill value."""
    return contains(IfThenElse, expr) or has_search(expr)
