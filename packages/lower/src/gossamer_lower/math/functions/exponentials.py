"""exp, exp2, expm1, tanh and sigmoid: x = n ln 2 + r, a polynomial of r, two powers of two.

The reduction is that of W. Cody and W. Waite (Software Manual for the Elementary Functions, 1980).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from gossamer_lower.math.functions import coefficients as known
from gossamer_lower.math.term_builder import Term

LOG2_E_ROUNDED = sum(known.LOG2_E)


class FloatFormat(msgspec.Struct, frozen=True):
    """A float format: the bits of its fraction, the bias of its exponent, and ln 2 in two parts."""

    fraction: int
    bias: int
    ln2: tuple[float, ...]

    @property
    def round(self) -> float:
        """The constant that rounds a number to an integer when it is added: the last bits of the sum are
        the integer."""
        return 1.5 * 2.0**self.fraction


FLOAT_FORMATS = {
    "float32": FloatFormat(23, 127, known.LN2_SINGLE),
    "float64": FloatFormat(52, 1023, known.LN2),
}


class ReducedArgument(NamedTuple):
    """exp(x) = 2^n (1 + s) with an integer n."""

    n: Term
    s: Term


def exp(x: Term, *, precise: bool) -> Term:
    """Return e^x; below 1 ulp."""
    kind = FLOAT_FORMATS[x.scalar]
    bounded = clamped_value(x, -float(kind.bias + kind.fraction) * 0.7, kind.bias * 0.7)
    return scale_by_power(reduced_argument(bounded, precise=precise))


def exp2(x: Term, *, precise: bool) -> Term:
    """Return 2^x; below 1 ulp, exact for whole x."""
    kind = FLOAT_FORMATS[x.scalar]
    # Beyond these bounds the result is 0 or infinite anyway, and n would not fit the exponent arithmetic.
    x = clamped_value(x, -float(kind.bias + kind.fraction + 3), float(kind.bias + 2))
    n = round_small(x)
    r = (x - n) * sum(kind.ln2)
    return scale_by_power(ReducedArgument(n, exp_minus_one_of_small(r, precise=precise)))


def expm1(x: Term, *, precise: bool) -> Term:
    """Return e^x - 1; below 2 ulp. The argument is float64."""
    bounded = clamped_value(x, -60.0, 709.9)
    reduction = reduced_argument(bounded, precise=precise)
    # Half of 2^n, which is finite for every n that the result is finite for.
    half = power_of_two(reduction.n - 1.0)
    result = x.code.fma(half, reduction.s, half - 0.5) * 2.0
    return x.code.select(x.magnitude() < 2.0**-54, x, result)


def tanh(x: Term, *, precise: bool) -> Term:
    """Return (e^2a - 1) / (e^2a + 1) of the magnitude a; below 3 ulp."""
    size = x.magnitude()
    # From 22 on, tanh rounds to 1 in float64.
    bounded = x.code.select(size > 22.0, 22.0, size)
    # expm1, since e^2a - 1 would cancel for small a.
    t = expm1(bounded * 2.0, precise=precise)
    return (t / (t + 2.0)).with_sign_of(x)


def sigmoid(x: Term, *, precise: bool) -> Term:
    """Return 1 / (1 + e^-x), by e^-|x|, which never overflows; below 3 ulp."""
    small = exp(-x.magnitude(), precise=precise)
    return x.code.select(x < 0.0, small, 1.0) / (small + 1.0)


def clamped_value(x: Term, low: float, high: float) -> Term:
    """Return the value clamped to the bounds; NaN stays NaN."""
    below = x.code.select(x > high, high, x)
    return x.code.select(below < low, low, below)


def round_small(x: Term) -> Term:
    """Return the nearest integer of a number that is small enough for the fraction."""
    magic = FLOAT_FORMATS[x.scalar].round
    return (x + magic) - magic


def reduced_argument(x: Term, *, precise: bool) -> ReducedArgument:
    """Return n and s of e^x."""
    kind = FLOAT_FORMATS[x.scalar]
    # Adding the constant rounds to the nearest integer:
    # conversions to integers are slow for vectors.
    n = x.code.fma(x, LOG2_E_ROUNDED, kind.round) - kind.round
    # ln 2 in two parts: n times the first is exact, so the cancellation loses nothing.
    r = x.code.fma(n, -kind.ln2[0], x)
    r = x.code.fma(n, -kind.ln2[1], r)
    return ReducedArgument(n, exp_minus_one_of_small(r, precise=precise))


def exp_minus_one_of_small(r: Term, *, precise: bool) -> Term:
    """Return e^r - 1 for |r| <= ln(2) / 2."""
    tail = r.code.horner(r, known.EXP if precise else known.EXP_32)
    return r.code.fma(r * r, tail, r)


def scale_by_power(reduction: ReducedArgument) -> Term:
    """Return 2^n (1 + s) with a single rounding even if the result is subnormal. It is multiplied by two
    powers of two, since 2^n itself may not be representable."""
    first = round_small(reduction.n * 0.5)
    whole = (reduction.s + 1.0) * power_of_two(first)
    return whole * power_of_two(reduction.n - first)


def power_of_two(n: Term) -> Term:
    """Return 2^n of an integer n that is the exponent of a normal number."""
    kind = FLOAT_FORMATS[n.scalar]
    number = (n + kind.round).bits() + kind.bias
    return (number << kind.fraction).read_as(n.scalar)
