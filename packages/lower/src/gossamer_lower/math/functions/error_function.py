"""erf: a polynomial near zero, else 1 - e^(-x^2 - p) with a polynomial p
(as N. Juffa does for float32)."""

from __future__ import annotations

from gossamer_lower.math.functions import coefficients as known
from gossamer_lower.math.functions.exponentials import clamped_value, exp
from gossamer_lower.math.term_builder import Term


def erf(x: Term, *, precise: bool) -> Term:
    """Return the error function; below 2 ulp."""
    code = x.code
    size = x.magnitude()
    square = x * x
    near = code.fma(x, code.horner(square, known.ERF if precise else known.ERF_32), x)
    middle, radius = (3.5, 2.5) if precise else (2.5, 1.5)
    bounded = clamped_value(size, 1.0, middle + radius)
    t = (bounded - middle) * (1 / radius)
    rest = code.horner(t, known.ERF_TAIL if precise else known.ERF_TAIL_32)
    far = (1.0 - exp(-code.fma(bounded, bounded, rest), precise=precise)).with_sign_of(x)
    return code.select(size < 1.0, near, far)
