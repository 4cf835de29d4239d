"""Methods that apply primitives to an object that holds a module."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from gossamer_ir.nodes import Module
from gossamer_schedule.primitive_result import PrimitiveResult

P = ParamSpec("P")
A = TypeVar("A", bound="AppliesPrimitives")


class AppliesPrimitives:
    """An object to which primitives are applied one after another."""

    def apply(
        self: A, primitive: Callable[..., PrimitiveResult], /, *args: Any, **keywords: Any
    ) -> A:
        """Apply one more primitive and return the object."""
        raise NotImplementedError


def fluent(
    primitive: Callable[Concatenate[Module, P], PrimitiveResult],
) -> Callable[Concatenate[A, P], A]:
    """Return the method that applies a primitive; it takes the arguments of the primitive after the module.

    Its type is derived from that of the primitive, so that type checkers check calls of the method.

    >>> from gossamer_schedule import split
    >>> fluent(split).__name__
    'split'
    """

    @wraps(primitive)
    def method(self: A, /, *args: P.args, **keywords: P.kwargs) -> A:
        return self.apply(primitive, *args, **keywords)

    return method
