"""`T`, the namespace that makes scripts valid Python. Its members are placeholders without behavior.

`T.prim_func` parses the source of the decorated function and returns its `Module`. The body never runs.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
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


class VScaleMultiple(Member):
    """A multiple of vscale in Python code, as an argument of a step: `T.vscale() * 4` stands for the text
    "4 * T.vscale()"."""

    def __init__(self, count: int) -> None:
        super().__init__("T.vscale()" if count == 1 else f"{count} * T.vscale()")
        self._count = count

    def __mul__(self, factor: int) -> VScaleMultiple:
        return VScaleMultiple(self._count * index(factor))

    __rmul__ = __mul__


class Namespace(Member):
    """The class of `T`."""

    def vscale(self) -> VScaleMultiple:
        """Return vscale, for factors and lanes of steps. In a script, the text is parsed instead."""
        return VScaleMultiple(1)

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
