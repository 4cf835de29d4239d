"""Floor division and modulo of floats, exact as in NumPy.

The remainder is computed by subtracting the divisor times powers of two, the largest first. Each step is
exact, and there is one for each bit of the quotient.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_lower.math.functions import roundings
from gossamer_lower.math.term_builder import Term


def floormod(x: Term, y: Term) -> Term:
    """Return the remainder of x // y, with the sign of y."""
    remainder = truncated_remainder(x, y)
    moved = x.code.select((y < 0.0).equals(remainder < 0.0), remainder, remainder + y)
    return x.code.select(remainder.equals(0.0), x.constant_like(0.0).with_sign_of(y), moved)


def floordiv(x: Term, y: Term) -> Term:
    """Return the quotient rounded to minus infinity; the plain quotient if y is 0."""
    code = x.code
    remainder = truncated_remainder(x, y)
    quotient = (x - remainder) / y
    differs = remainder.differs(0.0) & (y < 0.0).differs(remainder < 0.0)
    quotient = code.select(differs, quotient - 1.0, quotient)
    below = code.call("floor", quotient) if _has_floor(x) else roundings.floor(quotient)
    near = code.select((quotient - below) > 0.5, below + 1.0, below)
    plain = x / y
    zero = x.constant_like(0.0).with_sign_of(plain)
    return code.select(y.equals(0.0), plain, code.select(quotient.equals(0.0), zero, near))


def truncated_remainder(x: Term, y: Term) -> Term:
    """Return the remainder of the quotient rounded to zero, with the sign of x; NaN if there is
    none."""
    code = x.code
    size, divisor = x.magnitude(), y.magnitude()
    is_usual = (size < float("inf")) & (divisor > 0.0)
    start = code.select(is_usual, size, 0.0)
    divisor = code.select(is_usual, divisor, 1.0)

    def double(values: Sequence[Term]) -> Sequence[Term]:
        (t,) = values
        return [t.code.select(_fits(t, start), t * 2.0, t)]

    (largest,) = code.repeat([divisor], lambda values: _fits(values[0], start), double)

    def reduce(values: Sequence[Term]) -> Sequence[Term]:
        remainder, t = values
        remainder = remainder.code.select(remainder >= t, remainder - t, remainder)
        return [remainder, t.code.select(t > divisor, t * 0.5, t)]

    remainder, _ = code.repeat([start, largest], lambda values: values[0] >= divisor, reduce)
    return code.select(is_usual, remainder.with_sign_of(x), float("nan"))


def _fits(t: Term, size: Term) -> Term:
    return ~(t * 2.0 > size)


def _has_floor(x: Term) -> bool:
    return "floor" in x.code.instructions
