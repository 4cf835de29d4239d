"""The functions a `Call` may name, on values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gossamer_ir.interpret.values import convert, rounding


def math_function(name: str, dtype: str) -> Callable[..., Any]:
    """The function of that name on values of a dtype."""
    if name in _BY_LANE:
        function = _BY_LANE[name]
        return lambda *args: convert(_by_lane(function, *args), dtype)
    return rounding(dtype, _NUMPY[name])


def fused_multiply_add(a: float, b: float, c: float) -> float:
    """a * b + c rounded once, to odd, so that rounding it again to a narrower type is exact.

    The result for float64 is rounded to nearest by the caller's `narrow`.
    """
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    return _nearest(exact)


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact) or math.copysign(0.0, exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _to_odd(exact: Fraction) -> float:
    near = _nearest(exact)
    if math.isinf(near) or Fraction(near) == exact:
        return near
    other = math.nextafter(near, math.inf if exact > near else -math.inf)
    return near if int(np.float64(near).view(np.int64)) & 1 else other


def _fma(a: Any, b: Any, c: Any) -> Any:
    x, y, z = float(a), float(b), float(c)
    is_narrow = a.dtype != np.float64
    if is_narrow and all(map(math.isfinite, (x, y, z))):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact != 0:
            return np.float64(_to_odd(exact))
    return np.float64(fused_multiply_add(x, y, z))


def _by_lane(function: Callable[..., Any], *args: Any) -> Any:
    if np.ndim(args[0]) == 0:
        return function(*args)
    return np.array([function(*lanes) for lanes in zip(*args, strict=True)])


_BY_LANE: dict[str, Callable[..., Any]] = {
    "erf": lambda value: np.float64(math.erf(value)),
    "fma": _fma,
}
_NUMPY: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "pow": np.power,
    "abs": np.abs,
}
MATH_FUNCTIONS = frozenset(_BY_LANE) | frozenset(_NUMPY)
