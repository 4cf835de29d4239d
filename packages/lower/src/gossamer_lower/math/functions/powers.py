"""pow by the logarithm, in two parts, and the exponential; special cases as in C99."""

from __future__ import annotations

from gossamer_lower.math.functions import coefficients as known
from gossamer_lower.math.functions.compensated import (
    CompensatedSum,
    quick_two_sum,
    two_product,
    two_sum,
)
from gossamer_lower.math.functions.exponentials import (
    ReducedArgument,
    clamped_value,
    exp_minus_one_of_small,
    reduced_argument,
    scale_by_power,
)
from gossamer_lower.math.functions.logarithms import exponent_and_fraction, positive_log
from gossamer_lower.math.functions.roundings import trunc
from gossamer_lower.math.term_builder import Term

_INFINITY = float("inf")
_NAN = float("nan")
_MIN_EXPONENT, _MAX_EXPONENT = -780.0, 720.0
"""e^720 overflows, e^-760 is zero."""


def power(x: Term, y: Term, *, precise: bool) -> Term:
    """Return x^y; below 1 ulp."""
    code = x.code
    size = x.magnitude()
    # The logarithm of 1 for other numbers: `_with_special_cases` replaces their results.
    is_usual = (size > 0.0) & (size < _INFINITY)
    logarithm = (_long_log if precise else _log)(code.select(is_usual, size, 1.0))
    # Relative errors of the logarithm become absolute ones of the exponent:
    # it needs about 10 more bits.
    product = two_product(logarithm.high, y)
    result = _exp(product.high, code.fma(logarithm.low, y, product.low), precise=precise)
    return _with_special_cases(x, y, result)


def _with_special_cases(x: Term, y: Term, inner: Term) -> Term:
    """Return the power of any arguments, given the one of positive finite numbers."""
    code, size = x.code, x.magnitude()
    whole = _trunc(y)
    is_whole = whole.equals(y)
    # Half of an odd integer is not whole. Numbers beyond 2^53 are all even.
    is_odd = is_whole & _trunc(y * 0.5).differs(y * 0.5)
    # Powers of zero and of infinity, and powers that are infinite.
    grows = (size > 1.0).equals(y > 0.0)
    is_extreme = size.equals(0.0) | size.equals(_INFINITY) | y.magnitude().equals(_INFINITY)
    result = code.select(is_extreme, code.select(grows, x.constant_like(_INFINITY), 0.0), inner)
    sign = code.select(is_odd, x.bits() & (1 << 63), 0)
    result = (result.bits() ^ sign).read_as("float64")
    is_negative = (x < 0.0) & (x > -_INFINITY) & (y.magnitude() < _INFINITY)
    result = code.select(is_negative & ~is_whole, _NAN, result)
    # Only NaN differs from itself.
    result = code.select(x.differs(x) | y.differs(y), _NAN, result)
    is_minus_one = x.equals(-1.0) & y.magnitude().equals(_INFINITY)
    # Last, since C99 defines 1 for these even if the other argument is NaN.
    return code.select(y.equals(0.0) | x.equals(1.0) | is_minus_one, 1.0, result)


def _trunc(x: Term) -> Term:
    return x.code.call("trunc", x) if "trunc" in x.code.instructions else trunc(x)


def _exp(high: Term, low: Term, *, precise: bool) -> Term:
    """Return e^(high + low)."""
    code = high.code
    is_beyond = high.magnitude() > -_MIN_EXPONENT
    n, _ = reduced_argument(clamped_value(high, _MIN_EXPONENT, _MAX_EXPONENT), precise=precise)
    bounded = clamped_value(high, _MIN_EXPONENT, _MAX_EXPONENT)
    r = code.fma(n, -known.LN2[0], bounded)
    r = code.fma(n, -known.LN2[1], r) + code.select(is_beyond, 0.0, low)
    return scale_by_power(ReducedArgument(n, exp_minus_one_of_small(r, precise=precise)))


def _log(x: Term) -> CompensatedSum:
    """Return the logarithm in one part."""
    whole = positive_log(x, precise=True)
    return CompensatedSum(whole, whole.constant_like(0.0))


def _long_log(x: Term) -> CompensatedSum:
    """Return the logarithm with about 68 bits: with s = f / (2 + f) and z = s^2, 2 s (1 + z / 3 + ...), all
    but the tail of the series in two parts."""
    code = x.code
    k, f = exponent_and_fraction(x)
    divisor = two_sum(f.constant_like(2.0), f)
    s = f / divisor.high
    whole = two_product(s, divisor.high)
    s_low = (((f - whole.high) - whole.low) - s * divisor.low) / divisor.high
    z = two_product(s, s)
    z_low = code.fma(s + s, s_low, z.low)
    third = two_product(z.high, known.THIRD[0])
    tail = z.high * z.high * code.horner(z.high, known.LOG_TAIL)
    lower = third.low + code.fma(z.high, known.THIRD[1], code.fma(z_low, known.THIRD[0], tail))
    t = quick_two_sum(third.high, lower)
    twice, twice_low = s + s, s_low + s_low
    more = two_product(twice, t.high)
    more_low = code.fma(twice, t.low, code.fma(twice_low, t.high, more.low)) + twice_low
    near = quick_two_sum(twice, more.high)
    total = two_sum(k * known.LN2[0], near.high)
    rest = code.fma(k, known.LN2[1], total.low + (near.low + more_low))
    return quick_two_sum(total.high, rest)
