"""floor, ceil, trunc and round for targets without such instructions, and fma in twice the precision."""

from __future__ import annotations

from gossamer_lower.math.functions.exponentials import FLOAT_FORMATS
from gossamer_lower.math.term_builder import Term


def round_to_even(x: Term) -> Term:
    """Return the nearest integer, ties to even."""
    return _nearest_size(x).with_sign_of(x)


def floor(x: Term) -> Term:
    """Return the greatest integer not greater than x."""
    near = round_to_even(x)
    return (near - _one_where(near > x, x)).with_sign_of(x)


def ceil(x: Term) -> Term:
    """Return the least integer not less than x."""
    near = round_to_even(x)
    return (near + _one_where(near < x, x)).with_sign_of(x)


def trunc(x: Term) -> Term:
    """Return x rounded toward zero."""
    near = _nearest_size(x)
    return (near - _one_where(near > x.magnitude(), x)).with_sign_of(x)


def _nearest_size(x: Term) -> Term:
    size, limit = x.magnitude(), 2.0 ** FLOAT_FORMATS[x.scalar].fraction
    return x.code.select(size < limit, (size + limit) - limit, size)


def _one_where(condition: Term, like: Term) -> Term:
    return like.code.select(condition, like.constant_like(1.0), 0.0)


def fma_by_wider(a: Term, b: Term, c: Term) -> Term:
    """Return a * b + c of float32, as float64 rounded to odd, so that rounding it again is exact (S. Boldo
    and G. Melquiond, Emulation of FMA and correctly rounded sums, 2008)."""
    code = a.code
    product, addend = a * b, c
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    is_even = (total.bits() & 1).equals(0)
    is_inexact = (error < 0.0) | (error > 0.0)
    grows = (error > 0.0).equals(total > 0.0)
    step = code.select(grows, code.number(1, "uint64"), (1 << 64) - 1)
    odd = (total.bits() + step).read_as("float64")
    return code.select(is_inexact & is_even, odd, total)
