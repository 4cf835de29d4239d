"""The scalar parameters of a format while a tensor is built: some are given, the others follow."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_formats.description_sizes import evaluate
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import Expr, FormatDescription, Var
from gossamer_ir.traversal.free_vars import free_vars


def size_names(description: FormatDescription) -> list[str]:
    """Return the names of the scalar parameters of a description."""
    return [param.name for param in description.params if param.dtype != "handle"]


class KnownSizes:
    """The scalar parameters that are known so far.

    >>> from gossamer_formats import csr
    >>> from gossamer_ir.core.build import index_var
    >>> sizes = KnownSizes(csr(), {})
    >>> sizes.bind(index_var("m"), 3)
    3
    >>> sizes.known
    {'m': 3}
    """

    def __init__(self, description: FormatDescription, declared: Mapping[str, int]) -> None:
        """Raise `FormatError` (`format.parameter`) for a name that is not a size of the format."""
        names = size_names(description)
        for name in declared:
            if name not in names:
                raise FormatError(
                    "format.parameter",
                    f"The format '{description.name}' has no size '{name}'; it has {', '.join(names)}.",
                )
        self._description = description
        self.known: dict[str, int] = dict(declared)

    def is_known(self, expr: Expr) -> bool:
        """Return whether an expression has a value."""
        return set(free_vars(expr)) <= set(self.known)

    def bind(self, expr: Expr, value: int) -> int:
        """Return the value of a size. If it is a parameter that is not known, it gets the given value."""
        if isinstance(expr, Var) and expr.name not in self.known:
            self.known[expr.name] = value
        return self.value(expr)

    def value(self, expr: Expr) -> int:
        """Return the value of a size; raises `FormatError` (`format.parameter.missing`) if it is unknown."""
        if isinstance(expr, Var):
            self.require(expr.name)
            return self.known[expr.name]
        for name in sorted(free_vars(expr)):
            self.require(name)
        return evaluate(expr, self.known)

    def require(self, name: str) -> None:
        """Raise `FormatError` (`format.parameter.missing`) if a parameter is not known."""
        if name not in self.known:
            raise FormatError(
                "format.parameter.missing",
                f"The format '{self._description.name}' needs the size '{name}'.",
                hint=f"Pass {name}=...",
            )
