"""`T`, the namespace that makes scripts valid Python. Its members are placeholders without behavior.

`T.prim_func` parses the source of the decorated function and returns its `Module`. The body never runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from gossamer_ir.nodes import FormatDescription, Module


class Member:
    """A member of `T` or of another member. It can be called, so that annotations can be evaluated."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Member:
        if name.startswith("_"):
            raise AttributeError(name)
        return Member(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Member:
        return self

    def __repr__(self) -> str:
        return self._name


class Namespace(Member):
    """The class of `T`."""

    @overload
    def prim_func(self, function: Callable[..., Any], /) -> Module: ...

    @overload
    def prim_func(
        self, function: None = None, /, *, entry: bool = True
    ) -> Callable[[Callable[..., Any]], Module]: ...

    def prim_func(
        self, function: Callable[..., Any] | None = None, /, *, entry: bool = True
    ) -> Module | Callable[[Callable[..., Any]], Module]:
        """Parse a function and return the module whose entry it is."""
        from gossamer_ir.script.parse import parse_function

        return parse_function if function is None else parse_function(function)

    def format(self, function: Callable[..., Any]) -> FormatDescription:
        """Parse a function as a format description."""
        from gossamer_ir.script.formats import parse_format

        return parse_format(function)


T = Namespace("T")
