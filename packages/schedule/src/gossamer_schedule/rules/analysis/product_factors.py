"""The factors of products that matrix instructions compute: elements of one dtype, which are converted to
that of the sums."""

from __future__ import annotations

from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Cast, Expr, Load


def product_factors(term: Expr, *, dtype: str) -> tuple[Load, Load] | None:
    """Return the two elements of one dtype whose product a term of a sum in `dtype` is; None for another
    term."""
    match term:
        case Binary(op="mul", lhs=lhs, rhs=rhs):
            left, right = _unconverted(lhs, dtype=dtype), _unconverted(rhs, dtype=dtype)
            if isinstance(left, Load) and isinstance(right, Load) and left.dtype == right.dtype:
                return left, right
    return None


def _unconverted(value: Expr, *, dtype: str) -> Expr:
    """Return the value that is converted to a dtype; a conversion of a value of that dtype stays, since no
    intrinsic has it."""
    match value:
        case Cast(value=inner) if value.dtype == dtype != dtype_of(inner):
            return inner
    return value
