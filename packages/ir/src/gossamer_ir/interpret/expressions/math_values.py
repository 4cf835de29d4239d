"""The math functions of `Call`, evaluated on values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.math_functions import TF32_FRACTION_BITS
from gossamer_ir.interpret.memory.values import conversion, with_rounding


def numeric_function(name: str, dtype: str) -> Callable[..., Any]:
    """Return the math function with this name, for values of a dtype."""
    if name in _BY_LANE:
        computed_in = "float64" if DType.parse(dtype).is_float else "int64"
        function, convert = _BY_LANE[name], conversion(computed_in, dtype)
        return lambda *args: convert(_map_lanes(function, *args))
    return with_rounding(dtype, _NUMPY[name])


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once.

    The exact result is a fraction. For types narrower than float64 it is rounded to odd (the last bit is
    set if it is inexact), so that rounding it again to the type gives the correct result.
    """
    x, y, z = float(a), float(b), float(c)
    if not (math.isfinite(x) and math.isfinite(y)):
        return np.float64(x * y + z)
    if not math.isfinite(z):
        return np.float64(z)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return np.float64(x * y + z if x == 0 or y == 0 else 0.0)
    return np.float64(_nearest(exact) if a.dtype == np.float64 else _round_to_odd(exact))


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _round_to_odd(exact: Fraction) -> float:
    near = _nearest(exact)
    if Fraction(near) == exact:
        return near
    other = math.nextafter(near, math.inf if exact > near else -math.inf)
    return near if int(np.float64(near).view(np.int64)) & 1 else other


def _rsqrt(value: Any) -> Any:
    return (1.0 / np.sqrt(np.asarray(value, np.float64))).astype(value.dtype)[()]


def _sigmoid(value: Any) -> Any:
    wide = np.asarray(value, np.float64)
    small = np.exp(-np.abs(wide))
    return (np.where(wide < 0, small, 1.0) / (1.0 + small)).astype(value.dtype)[()]


def _tf32(value: Any) -> Any:
    """Return a float with its fraction rounded to 10 bits, ties away from zero, as `cvt.rna` of PTX does."""
    stored = np.asarray(value)
    dropped = np.finfo(stored.dtype).nmant - TF32_FRACTION_BITS
    if dropped <= 0:
        return value
    bits = stored.view(f"uint{8 * stored.itemsize}")
    half, mask = (bits.dtype.type(number) for number in (1 << dropped - 1, (1 << dropped) - 1))
    rounded = ((bits + half) & ~mask).view(stored.dtype)
    return np.where(np.isnan(stored), stored, rounded)[()]


def _bits(value: Any) -> int:
    """Return the bits of an integer as a number that is not negative."""
    mask: int = (1 << (8 * value.itemsize)) - 1
    return int(value) & mask


def _popcount(value: Any) -> Any:
    return np.int64(_bits(value).bit_count())


def _ctz(value: Any) -> Any:
    return np.int64(_lowest_bit(_bits(value), width=8 * value.itemsize))


def _find_nth_bit(value: Any, number: Any) -> Any:
    width, bits = 8 * value.itemsize, _bits(value)
    for _ in range(min(_bits(number), width)):
        bits &= bits - 1
    return np.int64(_lowest_bit(bits, width=width))


def _lowest_bit(bits: int, *, width: int) -> int:
    """Return the position of the lowest bit that is set; `width` if none is."""
    return (bits & -bits).bit_length() - 1 if bits else width


def _map_lanes(function: Callable[..., Any], *args: Any) -> Any:
    if np.ndim(args[0]) == 0:
        return function(*args)
    return np.array([function(*lanes) for lanes in zip(*args, strict=True)])


_BY_LANE: dict[str, Callable[..., Any]] = {
    "erf": lambda value: np.float64(math.erf(value)),
    "fma": _fma,
    "popcount": _popcount,
    "ctz": _ctz,
    "find_nth_bit": _find_nth_bit,
}
_NUMPY: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "pow": np.power,
    "abs": np.abs,
    "tf32": _tf32,
}
MATH_FUNCTIONS = frozenset(_BY_LANE) | frozenset(_NUMPY)
