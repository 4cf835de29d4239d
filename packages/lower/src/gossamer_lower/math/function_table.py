"""The table of math functions that are lowered to arithmetic, and the precision of the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from gossamer_lower.math.term_builder import Term

TermFunction: TypeAlias = Callable[..., Term]
"""Returns the value of a function of terms. With `precise`, it is computed to the precision of float64."""


def _function(family: str, name: str) -> TermFunction:
    """Return a function of a file in `functions`, which is imported at the first call: a program has calls of
    few functions (measured: 2 of 100 ms of attention, the second kernel of a process)."""

    def value(*args: Term, **options: bool) -> Term:
        home = import_module(f"gossamer_lower.math.functions.{family}")
        result: Term = getattr(home, name)(*args, **options)
        return result

    return value


def _in_own_dtype(function: TermFunction) -> TermFunction:
    """Return a function that computes in the dtype of its argument."""

    def value(x: Term) -> Term:
        return function(x, precise=x.scalar == "float64")

    return value


def _in_float64(function: TermFunction) -> TermFunction:
    """Return a function that computes in float64 and rounds to the dtype of its arguments."""

    def value(*args: Term) -> Term:
        scalar = args[0].scalar
        wide = (arg.to("float64") for arg in args)
        return function(*wide, precise=scalar == "float64").to(scalar)

    return value


def _rsqrt(x: Term) -> Term:
    return 1.0 / x.code.call("sqrt", x)


def _fma(a: Term, b: Term, c: Term) -> Term:
    wide = (term.to("float64") for term in (a, b, c))
    return _function("roundings", "fma_by_wider")(*wide).to(a.scalar)


_VALUES: dict[str, TermFunction] = {
    "exp": _in_own_dtype(_function("exponentials", "exp")),
    "exp2": _in_own_dtype(_function("exponentials", "exp2")),
    "sigmoid": _in_float64(_function("exponentials", "sigmoid")),
    "expm1": _in_float64(_function("exponentials", "expm1")),
    "tanh": _in_float64(_function("exponentials", "tanh")),
    "log": _in_float64(_function("logarithms", "log")),
    "log2": _in_float64(_function("logarithms", "log2")),
    "log10": _in_float64(_function("logarithms", "log10")),
    "log1p": _in_float64(_function("logarithms", "log1p")),
    "sin": _in_float64(_function("trigonometric", "sin")),
    "cos": _in_float64(_function("trigonometric", "cos")),
    "erf": _in_float64(_function("error_function", "erf")),
    "pow": _in_float64(_function("powers", "power")),
    "floor": _function("roundings", "floor"),
    "ceil": _function("roundings", "ceil"),
    "trunc": _function("roundings", "trunc"),
    "round": _function("roundings", "round_to_even"),
    "floordiv": _function("float_division", "floordiv"),
    "floormod": _function("float_division", "floormod"),
    "rsqrt": _rsqrt,
    "fma": _fma,
    "find_nth_bit": _function("bit_positions", "find_nth_bit"),
}

LOWERED = frozenset(_VALUES)
"""The functions that can be lowered. The others are instructions on every target."""


def function_value(function: str, args: tuple[Term, ...]) -> Term:
    """Return the value of a function of float32 or float64 terms, or of integers."""
    return _VALUES[function](*args)
