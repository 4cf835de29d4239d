"""sin and cos: x = n pi / 2 + r, and a polynomial of r^2 for each of the two.

Up to 2^20, n pi / 2 is subtracted in parts (W. Cody and W. Waite, 1980). Larger arguments are multiplied by
the relevant bits of 2 / pi (M. Payne and R. Hanek, Radian Reduction for Trigonometric Functions, 1983), in
code that runs only if there is such an argument.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from gossamer_lower.math.functions import coefficients as known
from gossamer_lower.math.functions.compensated import quick_two_sum, two_product, two_sum
from gossamer_lower.math.functions.exponentials import FLOAT_FORMATS
from gossamer_lower.math.term_builder import CodeBuilder, Term

MAX_BY_PARTS = 2.0**20
"""Up to here n has 20 bits, so that its products with numbers of 33 bits are exact."""

_MAGIC = FLOAT_FORMATS["float64"].round
# The multiplication works with 32-bit limbs in 64-bit integers, so that products and carries fit.
# Six of them hold the 192 bits that remain after cancellation: 53 for the result, the rest for
# arguments that are closest to a multiple of pi / 2 (about 61 bits cancel, see Payne and Hanek).
_WORD = (1 << 32) - 1
_LIMBS = 6
# The bits of 2^52: a number below 2^32 put into its fraction is a float64 without a conversion.
_UNIT = 0x4330000000000000


class Angle(NamedTuple):
    """x = quadrant pi / 2 + high + low; only the last two bits of quadrant are used."""

    quadrant: Term
    high: Term
    low: Term


def sin(x: Term, *, precise: bool) -> Term:
    """Return the sine; below 1 ulp."""
    angle = reduced_angle(x, precise=precise)
    result = _quadrant_value(angle, angle.quadrant, precise=precise)
    # If x^3 / 6 is less than the last bit, x is the sine; this keeps the sign of zero, too.
    return x.code.select(x.magnitude() < 2.0**-28, x, _finite_only(x, result))


def cos(x: Term, *, precise: bool) -> Term:
    """Return the cosine; below 1 ulp."""
    angle = reduced_angle(x, precise=precise)
    return _finite_only(x, _quadrant_value(angle, angle.quadrant + 1, precise=precise))


def _finite_only(x: Term, result: Term) -> Term:
    return x.code.select(x.magnitude() < float("inf"), result, float("nan"))


def _quadrant_value(angle: Angle, quadrant: Term, *, precise: bool) -> Term:
    code, r, low = angle.high.code, angle.high, angle.low
    z = r * r
    tail = code.horner(z, known.SIN if precise else known.SIN_32)
    sine = r + code.fma(z * r, tail, low)
    half = z * 0.5
    whole = 1.0 - half
    tail = code.horner(z, known.COS if precise else known.COS_32)
    lost = (1.0 - whole) - half
    cosine = whole + (lost + code.fma(z * z, tail, -(r * low)))
    chosen = code.select((quadrant & 1).equals(0), sine, cosine)
    sign = (quadrant & 2) << 62
    return (chosen.bits() ^ sign).read_as("float64")


def reduced_angle(x: Term, *, precise: bool) -> Angle:
    """Return the angle within its quadrant."""
    usual = _reduce_by_parts(x, precise=precise)
    is_large = x.magnitude() > MAX_BY_PARTS
    return Angle(*x.code.rarely(is_large, usual, lambda code: _reduce_by_bits(Term(code, x.expr))))


def _reduce_by_parts(x: Term, *, precise: bool) -> Angle:
    code = x.code
    counted = code.fma(x, 1 / known.PI_HALF_LONG[0], _MAGIC)
    n = counted - _MAGIC
    first, second, third, rest = known.PI_HALF
    near = code.fma(n, -first, x)
    if not precise:
        low = code.number(0.0, "float64")
        return Angle(counted.bits(), code.fma(n, -(second + third), near), low)
    high, low = two_sum(near, n * -second)
    high, lost = two_sum(high, n * -third)
    low = code.fma(n, -rest, low + lost)
    return Angle(counted.bits(), *quick_two_sum(high, low))


def _reduce_by_bits(x: Term) -> Angle:
    """Return the angle from 192 fraction bits of x / (pi / 2) / 4; the first two are the quadrant."""
    product = _product_with_two_over_pi(x)
    top = (product[5] << 32) | product[4]
    middle, bottom = (product[3] << 32) | product[2], product[1]
    fraction = (top << 2) | (middle >> 62)
    further = (middle << 2) | (bottom >> 30)
    is_negative = fraction >> 63
    quadrant = (top >> 62) + is_negative
    flip = (is_negative ^ 1) - 1
    words = _words(fraction ^ flip) + _words(further ^ flip)
    numbers = [_as_float(word) * 2.0 ** (-32 * (number + 1)) for number, word in enumerate(words)]
    high, low = two_sum(numbers[0], numbers[1])
    high, low = quick_two_sum(high, low + (numbers[2] + numbers[3]))
    angle, error = two_product(high, known.PI_HALF_LONG[0])
    error = error + (high * known.PI_HALF_LONG[1] + low * known.PI_HALF_LONG[0])
    angle, error = quick_two_sum(angle, error)
    sign = (x.bits() & (1 << 63)) ^ (is_negative << 63)
    signed = [(part.bits() ^ sign).read_as("float64") for part in (angle, error)]
    mirrored = x.code.select(x < 0.0, quadrant.constant_like(0) - quadrant, quadrant)
    return Angle(mirrored, *signed)


def _product_with_two_over_pi(x: Term) -> list[Term]:
    """Return x / (pi / 2) / 4 modulo 1 as six words of 32 bits, the lowest first."""
    code = x.code
    bits = x.bits()
    exponent = (bits >> 52) & 0x7FF
    # The result is not used for smaller numbers, and the table does not cover them.
    exponent = code.select(exponent < 1040, 1040, exponent)
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    # Bits of 2 / pi before this position contribute multiples of 4 only.
    skipped = exponent - (1077 - 64)
    window = _window(code, skipped)
    return _times(window, [mantissa & _WORD, mantissa >> 32])


def _window(code: CodeBuilder, skipped: Term) -> list[Term]:
    """Return six words, the lowest first, of the bits of 2 / pi, after 64 zero bits, from bit `skipped`."""
    look_up = code.table([0, 0, *known.TWO_OVER_PI])
    first, shift = (skipped >> 5).to("int64"), 32 - (skipped & 31)
    words = [look_up(first + limb) for limb in range(_LIMBS + 1)]
    pairs = pairwise(words)
    window = [(((left << 32) | right) >> shift) & _WORD for left, right in pairs]
    return window[::-1]


def _times(window: list[Term], factor: list[Term]) -> list[Term]:
    """Return the lowest six words of a product."""
    zero = window[0].constant_like(0)
    result, carry, before = [], zero, zero
    for word in window:
        low, high = word * factor[0], before * factor[1]
        total = (low & _WORD) + (high & _WORD) + carry
        result.append(total & _WORD)
        carry = (total >> 32) + (low >> 32) + (high >> 32)
        before = word
    return result


def _words(pair: Term) -> list[Term]:
    return [pair >> 32, pair & _WORD]


def _as_float(word: Term) -> Term:
    """Return a whole number below 2^52."""
    return (word | _UNIT).read_as("float64") - 2.0**52
