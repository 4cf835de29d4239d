"""Error-free transformations: sums and products with their rounding error (T. J. Dekker, 1971; D. Knuth)."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_lower.math.term_builder import Number, Term

# Dekker's and Veltkamp's constant for 53 bits: both halves have 26 bits, so their products are exact.
_SPLITTER = 2.0**27 + 1


class CompensatedSum(NamedTuple):
    """The sum of two numbers, the second of which is small."""

    high: Term
    low: Term


def two_sum(a: Term, b: Term) -> CompensatedSum:
    """Return a + b as a sum and its rounding error, exactly."""
    total = a + b
    part = total - a
    return CompensatedSum(total, (a - (total - part)) + (b - part))


def quick_two_sum(a: Term, b: Term) -> CompensatedSum:
    """Return a + b as a sum and its rounding error, exactly if |a| >= |b|."""
    total = a + b
    return CompensatedSum(total, b - (total - a))


def two_product(a: Term, b: Term | Number) -> CompensatedSum:
    """Return a * b as a product and its rounding error, exactly if nothing overflows."""
    other = a.constant_like(b)
    product = a * other
    if "fma" in a.code.instructions:
        return CompensatedSum(product, a.code.fma(a, other, -product))
    x, y = _halves(a), _halves(other)
    error = x.high * y.high - product
    return CompensatedSum(product, ((error + x.high * y.low) + x.low * y.high) + x.low * y.low)


def _halves(x: Term) -> CompensatedSum:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return CompensatedSum(high, x - high)
