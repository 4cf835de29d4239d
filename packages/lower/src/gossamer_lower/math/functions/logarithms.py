"""log, log2, log10 and log1p: x = 2^k m, m between the roots of 1/2 and 2, and an odd series in
s = (m - 1) / (m + 1), as in P.-T. P. Tang, Table-Driven Implementation of the Logarithm Function
(1990), section 2, without its table.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from gossamer_lower.math.functions import coefficients as known
from gossamer_lower.math.term_builder import Term

# Fields of a float64: the mask of its fraction, the bits of 1.0, and the bits of sqrt(1/2).
_FRACTION = (1 << 52) - 1
_ONE = 0x3FF0000000000000
_ROOT_OF_HALF = 0x3FE6A09E667F3BCD
_SPLIT = (1 << 64) - (1 << 32)
"""The mask of the upper half of the bits: products of such a number with one of 32 bits are exact."""

_BITS_OF_52 = 0x4330000000000000
"""The bits of 2^52: adding an integer below 2^52 to the bits adds it to the number."""

_INFINITY = float("inf")
_NAN = float("nan")


class MantissaExponent(NamedTuple):
    """x = 2^k (1 + f)."""

    k: Term
    f: Term


class LogarithmTerms(msgspec.Struct, frozen=True):
    """log(1 + f) = f - half + rest."""

    f: Term
    half: Term
    rest: Term


def log(x: Term, *, precise: bool) -> Term:
    """Return the natural logarithm; below 1 ulp."""
    return with_edge_cases(x, positive_log(x, precise=precise))


def positive_log(x: Term, *, precise: bool) -> Term:
    """Return the natural logarithm of a positive finite number."""
    k, f = exponent_and_fraction(x)
    series = log_near_one(f, precise=precise)
    lower = x.code.fma(k, known.LN2[1], series.rest)
    return x.code.fma(k, known.LN2[0], f - (series.half - lower))


def log2(x: Term, *, precise: bool) -> Term:
    """Return the logarithm to base 2; below 1 ulp, exact for powers of two."""
    return with_edge_cases(x, _scaled_logarithm(x, known.LOG2_E, (1.0, 0.0), precise=precise))


def log10(x: Term, *, precise: bool) -> Term:
    """Return the logarithm to base 10; below 1 ulp."""
    return with_edge_cases(x, _scaled_logarithm(x, known.LOG10_E, known.LOG10_2, precise=precise))


def log1p(x: Term, *, precise: bool) -> Term:
    """Return log(1 + x); below 1 ulp. The rounding error of the sum is added to the logarithm of the sum."""
    sum_ = x + 1.0
    lost = (x - (sum_ - 1.0)) / sum_
    k, f = exponent_and_fraction(sum_)
    series = log_near_one(f, precise=precise)
    lower = x.code.fma(k, known.LN2[1], lost) + series.rest
    result = with_edge_cases(sum_, x.code.fma(k, known.LN2[0], f - (series.half - lower)))
    return x.code.select(x.magnitude() < 2.0**-54, x, result)


def with_edge_cases(x: Term, result: Term) -> Term:
    """Return the logarithm of any argument, given the one of positive finite arguments."""
    code = x.code
    is_usual = (x > 0.0) & (x < _INFINITY)
    other = code.select(x < 0.0, _NAN, code.select(x.equals(0.0), -_INFINITY, x))
    return code.select(is_usual, result, other)


def exponent_and_fraction(x: Term) -> MantissaExponent:
    """Return the exponent and the fraction of a positive finite number."""
    code = x.code
    # A subnormal number has no leading one: scaled by 2^54, it is normal.
    is_small = x < 2.0**-1022
    bits = code.select(is_small, x * 2.0**54, x).bits() + (_ONE - _ROOT_OF_HALF)
    biased = ((bits >> 52) | _BITS_OF_52).read_as("float64") - (2.0**52 + 1023)
    exponent = code.select(is_small, biased - 54.0, biased)
    # The offset moves the border between two exponents from 1 to the root of 1/2, so that f is near
    # 0 on both sides of 1 and log(1) is exact.
    mantissa = ((bits & _FRACTION) + _ROOT_OF_HALF).read_as("float64")
    return MantissaExponent(exponent, mantissa - 1.0)


def log_near_one(f: Term, *, precise: bool) -> LogarithmTerms:
    """Return the logarithm of 1 + f: with s = f / (2 + f), 2 s = f - s f and s f = f^2 / 2 - s f^2 / 2."""
    s = f / (f + 2.0)
    z = s * s
    series = z * f.code.horner(z, known.LOG if precise else known.LOG_32)
    half = f * 0.5 * f
    return LogarithmTerms(f, half, s * (half + series))


def _scaled_logarithm(
    x: Term, factor: tuple[float, ...], two_logarithm: tuple[float, ...], *, precise: bool
) -> Term:
    """Return k log(2) + factor log(m), both in two parts."""
    code = x.code
    k, f = exponent_and_fraction(x)
    series = log_near_one(f, precise=precise)
    high = ((f - series.half).bits() & _SPLIT).read_as("float64")
    low = ((f - high) - series.half) + series.rest
    first, whole = high * factor[0], k * two_logarithm[0]
    total = whole + first
    rest = code.fma(low + high, factor[1], low * factor[0])
    rest = code.fma(k, two_logarithm[1], rest) + ((whole - total) + first)
    return total + rest
