"""Evaluate the size expressions of shapes, and solve them for a missing scalar."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import msgspec

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.arith.evaluate_integer import NotArithmeticError, evaluate_integer
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.nodes import Cast, Expr, Node, Var
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount

Scalars: TypeAlias = Mapping[str, int | float | bool]


def evaluate_size(expr: Expr, scalars: Scalars, *, arrays: Mapping[str, Array]) -> int:
    """Return the value of an integer expression; `arrays` are by buffer.

    >>> from gossamer_ir.core.build import add, index, index_var
    >>> evaluate_size(add(index_var("m"), index(1)), {"m": 4}, arrays={})
    5
    """
    try:
        return evaluate_integer(expr, scalars, element=partial(_array_element, arrays))
    except ZeroDivisionError:
        raise ArgumentError("kernel.size", "A size of the kernel is divided by zero.") from None
    except NotArithmeticError as error:
        raise UnsupportedError(
            "backend.size", f"A size cannot be an expression of kind '{error}'."
        ) from None


def _array_element(arrays: Mapping[str, Array], buffer_name: str, position: int) -> int:
    array = arrays[buffer_name]
    if not 0 <= position < array.size:
        raise ArgumentError(
            "kernel.size",
            f"A size is element {position} of '{buffer_name}', which has {amount(array.size, 'element')}.",
        )
    return int(array.reshape(-1)[position])


class LinearSize(msgspec.Struct, frozen=True):
    """`factor * name + offset`; a constant has no name (None) and the factor 0."""

    name: str | None
    factor: int
    offset: int

    def value(self, scalars: Scalars) -> int:
        """Return its value."""
        if self.name is None:
            return self.offset
        return self.offset + self.factor * int(scalars[self.name])

    def solve(self, value: int) -> int | None:
        """Return the value of the variable for which it has this value, or None."""
        if self.name is None:
            return None
        # 4 * m + 4 == 10 has no integer solution.
        quotient, rest = divmod(value - self.offset, self.factor)
        return None if rest else quotient


def to_linear(expr: Expr) -> LinearSize | None:
    """Return an expression as a linear form in at most one variable, or None.

    >>> from gossamer_ir.core.build import add, index, index_var, mul
    >>> to_linear(mul(add(index_var("m"), index(1)), index(4)))
    LinearSize(name='m', factor=4, offset=4)
    """
    form = affine_of(rewrite(expr, _without_widening))
    match list(form.terms.items()):
        case []:
            return LinearSize(None, 0, form.constant)
        case [(Var(name=name), factor)]:
            return LinearSize(name, factor, form.constant)
    return None


def _without_widening(node: Node) -> Expr | None:
    """Drop casts that widen an integer."""
    return node.value if isinstance(node, Cast) and node.dtype == "int64" else None
