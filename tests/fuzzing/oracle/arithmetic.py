"""Arithmetic of the language on NumPy arrays, by its definition in each dtype.

A bfloat16 is a float32 that has at most eight significant bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

Function: TypeAlias = Callable[..., np.ndarray]

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIGNIFICANT = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of the significand: integers up to two to this power are exact."""


def held(dtype: str) -> np.dtype:
    """The NumPy dtype in which values of a dtype are computed."""
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """The values in the dtype of an array argument."""
    if dtype != "bfloat16":
        return values.astype(dtype)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def loaded(array: np.ndarray, dtype: str) -> np.ndarray:
    """The values of such an array."""
    if dtype != "bfloat16":
        return array
    return (array.astype(np.uint32) << 16).view(np.float32)


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """The results, rounded to the dtype."""
    if dtype != "bfloat16":
        return np.asarray(values).astype(dtype)
    fraction, exponent = np.frexp(np.asarray(values, np.float64))
    return np.ldexp(np.rint(fraction * 256) / 256, exponent).astype(np.float32)


def converted(values: np.ndarray, source: str, dtype: str) -> np.ndarray:
    """A cast. Floats are truncated to integers and saturated; NaN becomes 0."""
    if source not in FLOATS or dtype not in INTEGERS:
        return rounded(values, dtype)
    limits, whole = np.iinfo(dtype), np.trunc(np.asarray(values, np.float64))
    is_low, is_high = whole <= float(limits.min), whole >= float(limits.max)
    fits = np.where(is_low | is_high | np.isnan(whole), 0, whole).astype(dtype)
    low, high = np.array(limits.min, dtype), np.array(limits.max, dtype)
    return np.where(is_low, low, np.where(is_high, high, fits))


def reinterpreted(values: np.ndarray, source: str, dtype: str) -> np.ndarray:
    """The same bits."""
    bits = np.atleast_1d(stored(np.asarray(values), source))
    as_stored = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    return loaded(bits.view(as_stored), dtype).reshape(np.shape(values))


def _divided(function: Function) -> Function:
    def divide(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        is_zero = right == 0
        return np.where(is_zero, left * 0, function(left, np.where(is_zero, right + 1, right)))

    return divide


def _shifted(function: Function, *, is_left: bool) -> Function:
    def shift(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        left, right = np.broadcast_arrays(left, right)
        bits = left.dtype.itemsize * 8
        is_inside = (right >= 0) & (right < bits)
        emptied = np.zeros_like(left) if is_left else np.where(left < 0, ~(left * 0), left * 0)
        return np.where(is_inside, function(left, np.where(is_inside, right, right * 0)), emptied)

    return shift


_INTEGER: dict[str, Function] = {
    "floordiv": _divided(np.floor_divide),
    "floormod": _divided(np.mod),
    "shl": _shifted(np.left_shift, is_left=True),
    "shr": _shifted(np.right_shift, is_left=False),
}
_BINARY: dict[str, Function] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "floordiv": np.floor_divide, "floormod": np.mod, "min": np.minimum, "max": np.maximum,
    "and": np.logical_and, "or": np.logical_or,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
}  # fmt: skip
_UNARY: dict[str, Function] = {"neg": np.negative, "not": np.logical_not, "bitnot": np.invert}
COMPARED: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_CALLED: dict[str, Function] = {
    **{name: getattr(np, name) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "tanh", "sin", "cos",
        "floor", "ceil", "trunc", "abs",
    )},
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "round": np.rint,
    "pow": np.power,
    "fma": lambda x, y, z: x * y + z,
}  # fmt: skip


def _bits(values: np.ndarray) -> np.ndarray:
    """The bits of integers along a new last axis, the lowest first."""
    values = np.asarray(values)
    unsigned = values[..., None].astype(f"u{values.itemsize}")
    places = np.arange(8 * values.itemsize, dtype=unsigned.dtype)
    return (unsigned >> places) & unsigned.dtype.type(1) != 0


def _first(is_wanted: np.ndarray) -> np.ndarray:
    """The place of the first true value along the last axis; the length of that axis if there is none."""
    return np.where(is_wanted.any(-1), is_wanted.argmax(-1), is_wanted.shape[-1])


def _find_nth_bit(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    bits = _bits(values)
    wanted = np.asarray(numbers).astype(f"u{np.asarray(numbers).itemsize}")[..., None]
    below = (np.cumsum(bits, -1) - bits).astype(np.uint64)
    return _first(bits & (below == wanted))


_OF_BITS: dict[str, Function] = {
    "popcount": lambda values: _bits(values).sum(-1),
    "ctz": lambda values: _first(_bits(values)),
    "find_nth_bit": _find_nth_bit,
}


def _tf32(value: np.ndarray, dtype: str) -> np.ndarray:
    """The value with ten bits of fraction, ties away from zero."""
    dropped = np.finfo(value.dtype).nmant - 10
    if dropped <= 0 or dtype == "bfloat16":
        return value
    bits = value.view(f"u{value.itemsize}")
    half = bits.dtype.type(1 << dropped - 1)
    return np.where(np.isnan(value), value, ((bits + half) >> dropped << dropped).view(value.dtype))


def unary(op: str, dtype: str, value: np.ndarray) -> np.ndarray:
    return rounded(_UNARY[op](value), dtype)


def binary(op: str, dtype: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    table = _INTEGER if dtype in INTEGERS and op in _INTEGER else _BINARY
    return rounded(table[op](left, right), dtype)


def called(function: str, dtype: str, *values: np.ndarray) -> np.ndarray:
    """A math function, in float64 unless it is one of integers."""
    if function in _OF_BITS:
        return rounded(_OF_BITS[function](*values).astype(dtype), dtype)
    if dtype in INTEGERS:
        return np.abs(*values)
    if function == "tf32":
        return _tf32(np.asarray(*values), dtype)
    wide = (np.asarray(value, np.float64) for value in values)
    return rounded(_CALLED[function](*wide), dtype)
