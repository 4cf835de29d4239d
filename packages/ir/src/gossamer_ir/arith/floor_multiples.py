"""The largest multiple of a number that is not above an expression: `n // c * c`."""

from __future__ import annotations

from gossamer_ir.arith.affine import affine_of, vscale_coefficient
from gossamer_ir.nodes import Binary, Expr


def dividend_of_floor(expr: Expr) -> Expr | None:
    """Return n for an expression `n // c * c` with a positive constant `c`, or such a multiple of vscale;
    None for any other expression. Such a product never overflows.

    >>> from gossamer_ir.core.build import floordiv, index, index_var
    >>> n, four = index_var("n"), index(4)
    >>> dividend_of_floor(Binary("mul", floordiv(n, four), four)) == n
    True
    """
    if not isinstance(expr, Binary) or expr.op != "mul" or not isinstance(expr.lhs, Binary):
        return None
    quotient = expr.lhs
    if (vscale_coefficient(affine_of(expr.rhs)) or 0) < 1:
        return None
    return quotient.lhs if (quotient.op, quotient.rhs) == ("floordiv", expr.rhs) else None
