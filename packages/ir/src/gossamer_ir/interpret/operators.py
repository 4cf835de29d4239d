"""Unary, binary and comparison operators on values, exact in their dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer_ir.dtypes import DType
from gossamer_ir.interpret.errors import InterpreterError
from gossamer_ir.interpret.values import rounding

Operator = Callable[..., Any]

UNARY: dict[str, Operator] = {
    "neg": operator.neg,
    "not": np.logical_not,
    "bitnot": operator.invert,
}
BINARY: dict[str, Operator] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "min": np.minimum,
    "max": np.maximum,
    "and": operator.and_,
    "or": operator.or_,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}
COMPARE: dict[str, Operator] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def unary(op: str, dtype: str) -> Operator:
    """The function of a unary operator on values of a dtype."""
    return rounding(dtype, UNARY[op])


def binary(op: str, dtype: str) -> Operator:
    """The function of a binary operator on values of a dtype."""
    kind = DType.parse(dtype)
    if kind.is_integer and op in ("floordiv", "floormod"):
        return _checked_division(BINARY[op], dtype)
    if op in ("shl", "shr"):
        return _checked_shift(BINARY[op], dtype)
    return rounding(dtype, BINARY[op])


def _checked_division(function: Operator, dtype: str) -> Operator:
    def divide(lhs: Any, rhs: Any) -> Any:
        if np.any(rhs == 0):
            raise InterpreterError(f"{lhs} is divided by zero as {dtype}.")
        return function(lhs, rhs)

    return divide


def _checked_shift(function: Operator, dtype: str) -> Operator:
    bits = DType.parse(dtype).bits

    def shift(lhs: Any, rhs: Any) -> Any:
        if np.any(rhs < 0) or np.any(rhs >= bits):
            raise InterpreterError(
                f"{lhs} is shifted by {rhs}, not by 0 to {bits - 1}, as {dtype}."
            )
        return function(lhs, rhs)

    return shift


def reduce_lanes(op: str, dtype: str) -> Callable[[Any], Any]:
    """The function that combines the lanes of a vector, first to last."""
    combine = binary(op, dtype)

    def reduce(lanes: Any) -> Any:
        result = lanes[0]
        for lane in lanes[1:]:
            result = combine(result, lane)
        return result

    return reduce
