"""Checks of scalar arguments."""

from __future__ import annotations

import math
import numbers
import operator

import numpy as np

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import ScalarParam


def required_scalar(param: ScalarParam, value: object) -> int | float | bool:
    """Return the value as a Python number of the parameter's dtype.

    >>> required_scalar(ScalarParam("m", "int32"), 7)
    7
    """
    dtype = DType.parse(param.dtype)
    if dtype.kind == "bool":
        return _to_bool(param, value)
    return _to_float(param, value) if dtype.is_float else _to_integer(param, dtype, value=value)


def require_size(param: ScalarParam, value: float) -> None:
    """Raise `ArgumentError` if a size is negative, or larger than proofs of bounds assume."""
    if value < 0:
        raise ArgumentError(
            "kernel.negative_size",
            f"The size '{param.name}' is {value}; expected at least 0.",
        )
    if value > MAX_SIZE:
        raise ArgumentError(
            "kernel.large_size",
            f"The size '{param.name}' is {value}; expected at most {MAX_SIZE}.",
        )


def scalar_limits(param: ScalarParam, *, is_size: bool) -> tuple[int, int]:
    """Return the range [low, high) of the integers that a parameter accepts; it is empty for a float."""
    dtype = DType.parse(param.dtype)
    if not dtype.is_integer:
        return 0, 0
    low, high = _integer_limits(dtype)
    return (max(low, 0), min(high, MAX_SIZE + 1)) if is_size else (low, high)


def _integer_limits(dtype: DType) -> tuple[int, int]:
    low, last = dtype.limits
    # Scalars are passed as int64_t, which cannot hold the upper half of uint64.
    return low, min(last + 1, 2**63)


def _to_bool(param: ScalarParam, value: object) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise _value_error(param, value, expected="a bool")


def _to_integer(param: ScalarParam, dtype: DType, *, value: object) -> int:
    if isinstance(value, np.ndarray) or not hasattr(value, "__index__"):
        raise _value_error(param, value, expected="an integer")
    number = operator.index(value)
    low, high = _integer_limits(dtype)
    if not low <= number < high:
        raise ArgumentError(
            "kernel.scalar_range",
            f"The argument '{param.name}' is {number}; expected {low} to {high - 1} for a scalar of "
            f"{param.dtype}.",
        )
    return number


def _to_float(param: ScalarParam, value: object) -> float:
    if isinstance(value, np.ndarray) or not isinstance(value, numbers.Real):
        raise _value_error(param, value, expected="a real number")
    try:
        number = float(value)
        is_lost = math.isfinite(number) and param.dtype == "float32" and _overflows(number)
    except OverflowError:
        is_lost = True
    if is_lost:
        raise ArgumentError(
            "kernel.scalar_range",
            f"The argument '{param.name}' is {value}, which {param.dtype} cannot hold.",
        )
    return number


def _overflows(number: float) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isinf(np.float32(number)))


def _value_error(param: ScalarParam, value: object, *, expected: str) -> ArgumentError:
    return ArgumentError(
        "kernel.scalar",
        f"The argument '{param.name}' is {value!r} of type {type(value).__qualname__}; "
        f"expected {expected} ({param.dtype}).",
    )
