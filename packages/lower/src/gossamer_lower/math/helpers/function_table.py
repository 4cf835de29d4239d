"""The table of math functions that are lowered to arithmetic, and the precision of the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gossamer_lower.math.helpers.functions import (
    error_function,
    exponentials,
    float_division,
    logarithms,
    roundings,
    trigonometric,
)
from gossamer_lower.math.helpers.functions.bit_positions import find_nth_bit
from gossamer_lower.math.helpers.functions.powers import power
from gossamer_lower.math.helpers.term_builder import Term

Precise: TypeAlias = Callable[..., Term]

_IN_FLOAT32: dict[str, Precise] = {
    "exp": exponentials.exp,
    "exp2": exponentials.exp2,
}
"""Functions computed in float32 for float32 arguments; all others are computed in float64."""

_IN_FLOAT64: dict[str, Precise] = {
    **_IN_FLOAT32,
    "sigmoid": exponentials.sigmoid,
    "expm1": exponentials.expm1,
    "tanh": exponentials.tanh,
    "log": logarithms.log,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "log1p": logarithms.log1p,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "erf": error_function.erf,
    "pow": power,
}
_EXACT: dict[str, Callable[[Term], Term]] = {
    "floor": roundings.floor,
    "ceil": roundings.ceil,
    "trunc": roundings.trunc,
    "round": roundings.rounded_to_even,
}
_DIVISIONS: dict[str, Callable[[Term, Term], Term]] = {
    "floordiv": float_division.floordiv,
    "floormod": float_division.floormod,
}

LOWERED = frozenset({*_IN_FLOAT64, *_EXACT, *_DIVISIONS, "rsqrt", "fma", "find_nth_bit"})
"""The functions that can be lowered. The others are instructions on every target."""


def function_value(function: str, args: tuple[Term, ...]) -> Term:
    """Return the value of a function of float32 or float64 terms, or of integers."""
    first = args[0]
    if function == "find_nth_bit":
        return find_nth_bit(*args)
    is_wide = first.scalar == "float64"
    if function == "rsqrt":
        return 1.0 / first.code.call("sqrt", first)
    if function in _EXACT:
        return _EXACT[function](first)
    if function in _DIVISIONS:
        return _DIVISIONS[function](*args)
    if function == "fma":
        return _fma(args)
    if not is_wide and function in _IN_FLOAT32:
        return _IN_FLOAT32[function](first, precise=False)
    wide = tuple(arg.to("float64") for arg in args)
    return _IN_FLOAT64[function](*wide, precise=is_wide).to(first.scalar)


def _fma(args: tuple[Term, ...]) -> Term:
    a, b, c = (arg.to("float64") for arg in args)
    return roundings.fma_by_wider(a, b, c).to(args[0].scalar)
