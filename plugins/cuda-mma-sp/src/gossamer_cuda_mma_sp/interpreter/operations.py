"""The operations of PTX on arrays, with an element for each thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

LaneValues: TypeAlias = Any
"""An array with an element for each thread, whose dtype is that of the instruction."""

_BITS = (8, 16, 32, 64)
PTX_DTYPES: Mapping[str, np.dtype[Any]] = {
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in _BITS},
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "ub" for bits in _BITS},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in _BITS[1:]},
    "pred": np.dtype(np.bool_),
}
"""The dtypes of values by the types of PTX."""


def _shift_left(value: LaneValues, count: LaneValues) -> LaneValues:
    bits = value.dtype.itemsize * 8
    amount = np.minimum(count.astype(np.uint64), bits - 1).astype(value.dtype)
    return np.where(count < bits, value << amount, value.dtype.type(0))


def _shift_right(value: LaneValues, count: LaneValues) -> LaneValues:
    bits = value.dtype.itemsize * 8
    amount = np.minimum(count.astype(np.uint64), bits - 1).astype(value.dtype)
    # The sign fills a signed number, of which a large count leaves nothing else.
    if value.dtype.kind == "i":
        return value >> amount
    return np.where(count < bits, value >> amount, value.dtype.type(0))


def _high_product(a: LaneValues, b: LaneValues) -> LaneValues:
    wide = [int(x) * int(y) for x, y in zip(a, b, strict=True)]
    bits = a.dtype.itemsize * 8
    mask = (1 << bits) - 1
    unsigned = np.array([(value >> bits) & mask for value in wide], f"u{bits // 8}")
    return unsigned.view(a.dtype)


def _divide(a: LaneValues, b: LaneValues) -> LaneValues:
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // safe
    if a.dtype.kind == "i":
        # Division truncates.
        rest = a - quotient * safe
        quotient = quotient + ((rest != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
    return np.where(
        b == 0, a.dtype.type(-1) if a.dtype.kind == "i" else np.iinfo(a.dtype).max, quotient
    )


def _remainder(a: LaneValues, b: LaneValues) -> LaneValues:
    safe = np.where(b == 0, b.dtype.type(1), b)
    return np.where(b == 0, a, a - _divide(a, safe) * safe)


def fused_multiply_add(a: LaneValues, b: LaneValues, c: LaneValues) -> LaneValues:
    """Return a product plus c, rounded once for float32; the rounding of float64 is that of long double."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


def _bits_set(value: LaneValues) -> LaneValues:
    return np.array([int(v).bit_count() for v in value], np.uint32)


def _leading_zeros(value: LaneValues) -> LaneValues:
    bits = value.dtype.itemsize * 8
    mask = (1 << bits) - 1
    return np.array([bits - (int(v) & mask).bit_length() for v in value], np.uint32)


def _reverse_bits(value: LaneValues) -> LaneValues:
    bits = value.dtype.itemsize * 8
    return np.array([int(f"{int(v):0{bits}b}"[::-1], 2) for v in value], value.dtype)


UNARY_OPERATIONS: dict[str, Callable[[LaneValues], LaneValues]] = {
    "neg": lambda a: -a,
    "abs": np.abs,
    "not": lambda a: ~a,
    "sqrt": np.sqrt,
    "popc": _bits_set,
    "clz": _leading_zeros,
    "brev": _reverse_bits,
    "mov": lambda a: a,
}
BINARY_OPERATIONS: dict[str, Callable[[LaneValues, LaneValues], LaneValues]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "rem": _remainder,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": _shift_left,
    "shr": _shift_right,
    "hi": _high_product,
    "copysign": lambda a, b: np.copysign(b, a),
}
COMPARISON_OPERATIONS: dict[str, Callable[[LaneValues, LaneValues], LaneValues]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: (a != b) & (a == a) & (b == b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}
"""Comparisons that are false for NaN, `num` and `nan`; a name with `u` is also true for NaN."""


def compare_values(name: str, a: LaneValues, b: LaneValues) -> LaneValues:
    """Return the result of a comparison by its name.

    >>> compare_values("ltu", np.array([1.0, np.nan]), np.array([2.0, 2.0])).tolist()
    [True, True]
    """
    if name in COMPARISON_OPERATIONS:
        return COMPARISON_OPERATIONS[name](a, b)
    return COMPARISON_OPERATIONS[name.removesuffix("u")](a, b) | (a != a) | (b != b)


def min_or_max(name: str, a: LaneValues, b: LaneValues, *, keeps_nan: bool) -> LaneValues:
    """Return the `min` or `max` of two values. Unless it keeps NaN, the result is the other value."""
    if a.dtype.kind != "f":
        return np.minimum(a, b) if name == "min" else np.maximum(a, b)
    if keeps_nan:
        return np.minimum(a, b) if name == "min" else np.maximum(a, b)
    return np.fmin(a, b) if name == "min" else np.fmax(a, b)


_ROUNDINGS: dict[str, Callable[[LaneValues], LaneValues]] = {
    "rni": np.rint,
    "rmi": np.floor,
    "rpi": np.ceil,
    "rzi": np.trunc,
}


def round_values_to_tf32(value: LaneValues) -> LaneValues:
    """Return float32 with 10 bits of fraction, ties away from zero.

    >>> round_values_to_tf32(np.array([1 + 2.0**-11, np.inf], np.float32)).tolist()
    [1.0009765625, inf]
    """
    # The fraction of float64 is long enough that the rounded one is that of float32, too.
    fraction, exponent = np.frexp(value.astype(np.float64))
    # Subnormal numbers have the bits of the least normal one.
    kept = 11 + np.minimum(exponent + 125, 0)
    size = np.floor(np.ldexp(np.abs(fraction), kept) + 0.5)
    with np.errstate(over="ignore"):
        rounded = np.copysign(np.ldexp(size, exponent - kept), value).astype(np.float32)
    return np.where(np.isfinite(value), rounded, value)


def convert_values(value: LaneValues, to: np.dtype[Any], suffixes: tuple[str, ...]) -> LaneValues:
    """Return a value in another dtype. A float that becomes an integer saturates, and NaN becomes 0.

    >>> convert_values(np.array([-1.5, np.nan, 1e30]), np.dtype(np.int32), ("rzi",)).tolist()
    [-1, 0, 2147483647]
    """
    rounding = next((_ROUNDINGS[suffix] for suffix in suffixes if suffix in _ROUNDINGS), None)
    if value.dtype.kind == "f" and rounding is not None:
        value = rounding(value)
    if value.dtype.kind == "f" and to.kind in "iu":
        limits = np.iinfo(to)
        # The largest float below the limit converts exactly; above it the limit itself is the result.
        inside = np.nan_to_num(value, nan=0.0, posinf=0.0, neginf=0.0)
        inside = np.where((inside >= float(limits.min)) & (inside < float(limits.max)), inside, 0)
        result = inside.astype(to)
        result = np.where(value >= float(limits.max), limits.max, result)
        return np.where(value < float(limits.min), limits.min, result).astype(to)
    if "sat" in suffixes and value.dtype.kind in "iu" and to.kind in "iu":
        limits = np.iinfo(to)
        return np.clip(value, limits.min, limits.max).astype(to)
    return value.astype(to)
