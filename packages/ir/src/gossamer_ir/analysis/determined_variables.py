"""What the indices of an element tell about the point of an iteration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.nodes import Binary, Expr, Node, Var
from gossamer_ir.traversal.walk import children, free_vars


class DeterminedVariables:
    """The variables, among `unknown` ones and `lets`, and the expressions whose values follow from those
    of some indices.

    >>> from gossamer_ir.core.build import add, index, index_var
    >>> i, j = index_var("i"), index_var("j")
    >>> list(DeterminedVariables((add(i, j), j), {"i", "j"}, {}).missing(i))
    []
    >>> list(DeterminedVariables((add(i, j),), {"i", "j"}, {}).missing(add(add(i, j), j)))
    ['j']
    """

    def __init__(
        self, indices: Iterable[Expr], unknown: Set[str], lets: Mapping[str, Expr]
    ) -> None:
        self._unknown = unknown | lets.keys()
        self._lets = lets
        self._names: set[str] = set()
        self._values: set[Expr] = set(indices)
        while self._learns():
            pass

    def missing(self, node: Node) -> Iterator[str]:
        """The variables in an expression that it needs besides what is told."""
        if node in self._values:
            return
        if isinstance(node, Var) and self._is_open(node.name):
            yield node.name
        for child in children(node):
            yield from self.missing(child)

    def _learns(self) -> bool:
        before = len(self._names) + len(self._values)
        for value in tuple(self._values):
            self._values.update(self._numerator(value))
            self._names.update(self._solved(value))
        for name, value in self._lets.items():
            if name in self._names:
                self._values.add(value)
            elif not any(map(self._is_open, free_vars(value))):
                self._names.add(name)
        return len(self._names) + len(self._values) > before

    def _is_open(self, name: str) -> bool:
        return name in self._unknown and name not in self._names

    def _numerator(self, value: Expr) -> Iterator[Expr]:
        """What a quotient is of whose remainder is told, too."""
        match value:
            case Binary(op="floordiv", lhs=lhs, rhs=rhs):
                if Binary("floormod", lhs, rhs) in self._values:
                    yield lhs

    def _solved(self, value: Expr) -> Iterator[str]:
        """The one variable of a sum that is not known yet."""
        terms = affine_of(value).terms
        mixed = {name for atom in terms if not isinstance(atom, Var) for name in free_vars(atom)}
        names = [atom.name for atom in terms if isinstance(atom, Var) and self._is_open(atom.name)]
        if len(names) == 1 and not any(map(self._is_open, mixed)):
            yield names[0]
