"""Sizes: shape expressions evaluated over scalars and arrays, and solved for a missing scalar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.errors import ArgumentError, InternalError, UnsupportedError
from gossamer_ir.nodes import Binary, Cast, Const, Expr, Load, Var

Array: TypeAlias = "np.ndarray[Any, Any]"
Scalars: TypeAlias = Mapping[str, int | float | bool]

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda lhs, rhs: lhs + rhs,
    "sub": lambda lhs, rhs: lhs - rhs,
    "mul": lambda lhs, rhs: lhs * rhs,
    "floordiv": lambda lhs, rhs: lhs // rhs,
    "floormod": lambda lhs, rhs: lhs % rhs,
    "min": min,
    "max": max,
}


def evaluate(expr: Expr, scalars: Scalars, *, arrays: Mapping[str, Array]) -> int:
    """The value of an integer expression; `arrays` are by the name of the buffer.

    >>> from gossamer_ir.build import add, index, index_var
    >>> evaluate(add(index_var("m"), index(1)), {"m": 4}, arrays={})
    5
    """
    match expr:
        case Const():
            return int(expr.text)
        case Var():
            return _variable(expr.name, scalars)
        case Binary() if expr.op in _OPERATIONS:
            left = evaluate(expr.lhs, scalars, arrays=arrays)
            right = evaluate(expr.rhs, scalars, arrays=arrays)
            if right == 0 and expr.op in ("floordiv", "floormod"):
                raise ArgumentError("kernel.size", "A size of the kernel is divided by zero.")
            return _OPERATIONS[expr.op](left, right)
        case Cast():
            return evaluate(expr.value, scalars, arrays=arrays)
        case Load(indices=(position,)):
            return _element(expr.buffer, evaluate(position, scalars, arrays=arrays), arrays)
        case _:
            raise UnsupportedError(
                "backend.size", f"A size cannot be a {type(expr).__name__} expression yet."
            )


def _variable(name: str, scalars: Scalars) -> int:
    if name not in scalars:
        raise InternalError(f"A signature's expression uses {name}, which is no parameter.")
    return int(scalars[name])


def _element(buffer: str, position: int, arrays: Mapping[str, Array]) -> int:
    array = arrays[buffer]
    if not 0 <= position < array.size:
        raise ArgumentError(
            "kernel.size",
            f"A size is element {position} of {buffer}, which has {array.size} elements.",
        )
    return int(array.reshape(-1)[position])


def solve(expr: Expr, value: int, *, known: Scalars) -> tuple[str, int] | None:
    """The scalar, and its value, that makes expr equal value; None where that is not plain.

    A variable is solved for through sums, differences and products with constants.

    >>> from gossamer_ir.build import add, index, index_var, mul
    >>> solve(mul(add(index_var("m"), index(1)), index(4)), 20, known={})
    ('m', 4)
    """
    match expr:
        case Var() if expr.name not in known:
            return expr.name, value
        case Binary(op="add", rhs=Const(text=term)):
            return solve(expr.lhs, value - int(term), known=known)
        case Binary(op="sub", rhs=Const(text=term)):
            return solve(expr.lhs, value + int(term), known=known)
        case Binary(op="mul", rhs=Const(text=factor)) if factor != "0":
            quotient, rest = divmod(value, int(factor))
            return None if rest else solve(expr.lhs, quotient, known=known)
        case Binary(op="add" | "mul", lhs=Const(), rhs=rhs) if not isinstance(rhs, Const):
            return solve(Binary(expr.op, rhs, expr.lhs), value, known=known)
        case _:
            return None
