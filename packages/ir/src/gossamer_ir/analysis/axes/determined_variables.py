"""The variables of an iteration that the indices of an element determine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.nodes import Binary, Expr, Node, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import children


class DeterminedVars:
    """The variables and expressions whose values follow from the values of some indices.

    `unknown` are the variables in question; `lets` are further ones, with their values.

    >>> from gossamer_ir.core.build import add, index, index_var
    >>> i, j = index_var("i"), index_var("j")
    >>> list(DeterminedVars((add(i, j), j), {"i", "j"}, {}).missing(i))
    []
    >>> list(DeterminedVars((add(i, j),), {"i", "j"}, {}).missing(add(add(i, j), j)))
    ['j']
    """

    def __init__(
        self, indices: Iterable[Expr], unknown: Set[str], lets: Mapping[str, Expr]
    ) -> None:
        self._unknown = unknown | lets.keys()
        self._lets = lets
        self._names: set[str] = set()
        self._values: set[Expr] = set(indices)
        while self._propagate():
            pass

    def missing(self, node: Node) -> Iterator[str]:
        """Yield the variables in an expression that are not determined."""
        if node in self._values:
            return
        if isinstance(node, Var) and self._is_open(node.name):
            yield node.name
        for child in children(node):
            yield from self.missing(child)

    def _propagate(self) -> bool:
        """Add the variables that follow from the determined values; return whether there are new ones."""
        before = len(self._names) + len(self._values)
        for value in tuple(self._values):
            self._values.update(self._dividend(value))
            self._names.update(self._solved_var(value))
        for name, value in self._lets.items():
            if name in self._names:
                self._values.add(value)
            elif not any(map(self._is_open, free_vars(value))):
                self._names.add(name)
        return len(self._names) + len(self._values) > before

    def _is_open(self, name: str) -> bool:
        return name in self._unknown and name not in self._names

    def _dividend(self, value: Expr) -> Iterator[Expr]:
        """Yield the dividend, if both its quotient and remainder are determined."""
        match value:
            case Binary(op="floordiv", lhs=lhs, rhs=rhs):
                if Binary("floormod", lhs, rhs) in self._values:
                    yield lhs

    def _solved_var(self, value: Expr) -> Iterator[str]:
        """Yield the variable of an affine form, if it is the only one that is not determined."""
        terms = affine_of(value).terms
        mixed = {name for atom in terms if not isinstance(atom, Var) for name in free_vars(atom)}
        names = [atom.name for atom in terms if isinstance(atom, Var) and self._is_open(atom.name)]
        if len(names) == 1 and not any(map(self._is_open, mixed)):
            yield names[0]
