"""Unary, binary and comparison operators, evaluated on values in their dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interpret.memory.values import with_rounding

NumericFunction: TypeAlias = Callable[..., Any]

UNARY: dict[str, NumericFunction] = {
    "neg": operator.neg,
    "not": np.logical_not,
    "bitnot": operator.invert,
}
BINARY: dict[str, NumericFunction] = {
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
COMPARE: dict[str, NumericFunction] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@lru_cache(maxsize=1024)
def unary_function(op: str, dtype: str) -> NumericFunction:
    """Return the function of a unary operator, for values of a dtype."""
    return with_rounding(dtype, UNARY[op])


@lru_cache(maxsize=1024)
def binary_function(op: str, dtype_name: str) -> NumericFunction:
    """Return the function of a binary operator, for values of a dtype."""
    dtype = DType.parse(dtype_name)
    if dtype.is_integer and op in ("floordiv", "floormod"):
        return _total_division(BINARY[op])
    if op in ("shl", "shr"):
        return _total_shift(BINARY[op], op, dtype_name)
    return with_rounding(dtype_name, BINARY[op])


def _total_division(function: NumericFunction) -> NumericFunction:
    """Return integer division or remainder in which division by zero gives 0."""

    def divide(lhs: Any, rhs: Any) -> Any:
        zero = rhs == 0
        if isinstance(zero, np.bool_) and isinstance(lhs, np.generic):
            return rhs if zero else function(lhs, rhs)
        safe = np.where(zero, np.ones_like(rhs), rhs)[()]
        return np.where(zero, np.zeros_like(rhs), function(lhs, safe))[()]

    return divide


def _total_shift(function: NumericFunction, op: str, dtype: str) -> NumericFunction:
    """Return a shift by an unsigned count. If the count is at least the number of bits, the result is 0, or
    -1 for a right shift of a negative value."""
    bits = DType.parse(dtype).bits

    def shift(lhs: Any, rhs: Any) -> Any:
        is_scalar = isinstance(lhs, np.generic)
        if is_scalar and 0 <= rhs < bits:
            return function(lhs, lhs.dtype.type(rhs))
        if is_scalar:
            return lhs.dtype.type(-1 if op == "shr" and lhs < 0 else 0)
        is_inside = (rhs >= 0) & (rhs < bits)
        moved = function(lhs, np.where(is_inside, rhs, np.zeros_like(rhs)).astype(lhs.dtype))
        rest = np.zeros_like(lhs)
        if op == "shr":
            rest = np.where(lhs < 0, ~rest, rest)
        return np.where(is_inside, moved, rest).astype(lhs.dtype)[()]

    return shift


def reduce_lanes(op: str, dtype: str) -> Callable[[Any], Any]:
    """Return a function that combines the lanes of a vector, from the first to the last."""
    combine = binary_function(op, dtype)

    def reduce(lanes: Any) -> Any:
        result = lanes[0]
        for lane in lanes[1:]:
            result = combine(result, lane)
        return result

    return reduce
