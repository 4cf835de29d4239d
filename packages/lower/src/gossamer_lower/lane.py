"""What a vector is in one of its lanes."""

from __future__ import annotations

from gossamer_ir import build
from gossamer_ir.nodes import Broadcast, Expr, Ramp, Var
from gossamer_ir.walk import map_children


def in_lane(expr: Expr, lane: Var) -> Expr:
    """The value of a vector in the lane with a number, or of a scalar.

    >>> from gossamer_ir.nodes import Lanes
    >>> from gossamer_ir.script import print_expr
    >>> print_expr(in_lane(Ramp(build.index_var("i"), build.ONE, Lanes(8)), build.index_var("lane")))
    'i + lane'
    """
    match expr:
        case Ramp():
            return build.add(expr.base, build.mul(expr.stride, lane))
        case Broadcast():
            return expr.value
    return map_children(expr, lambda child: in_lane(child, lane))
