"""Expressions that never decrease from one iteration of a loop to the next.

Whether all that later iterations touch, with the loops inside them, comes after what earlier ones
touch, says `ordered`.
"""

from __future__ import annotations

from gossamer_ir.build import ONE, add, index_var
from gossamer_ir.nodes import Binary, Expr, Search
from gossamer_ir.program_point import ProgramPoint
from gossamer_ir.walk import free_vars, occurs, substitute


def never_decreases(expr: Expr, var: str, point: ProgramPoint) -> bool:
    """Whether it is proved that an integer expression is not greater than what it is when a variable is
    greater by 1, and that neither value wraps; the point is where the variable has the lesser value.

    >>> from gossamer_ir.build import ZERO, floordiv, index, widen
    >>> from gossamer_ir.nodes import For, Function, Load, Monotone
    >>> function = Function("f", (), (), facts=(Monotone("P"),))
    >>> i, point = index_var("i"), ProgramPoint(function)
    >>> point.assume_loop(For("i", ZERO, index(8), ()))
    >>> offset, other = (widen(Load(name, (i,), "int32")) for name in "PQ")
    >>> [never_decreases(at, "i", point) for at in (floordiv(add(offset, i), index(4)), other)]
    [True, False]
    """
    if not (point.is_lasting(expr) and point.is_lasting(_later(expr, var))):
        return False
    return _rises(expr, var, point)


def _rises(expr: Expr, var: str, point: ProgramPoint) -> bool:
    if var not in free_vars(expr):
        return True
    match expr:
        case Binary(op="floordiv", lhs=lhs, rhs=rhs) if var not in free_vars(rhs):
            return point.is_nonnegative(rhs) and _rises(lhs, var, point)
        case Search(kind="lower" | "upper", prefix=prefix, begin=begin, end=end, value=value):
            is_fixed = var not in free_vars(*prefix, begin, end)
            return is_fixed and _rises(value, var, point)
        case Binary(op="add", lhs=lhs, rhs=rhs) if occurs(Search, expr):
            return _rises(lhs, var, point) and _rises(rhs, var, point)
        case Binary(op="sub", lhs=lhs, rhs=rhs) if occurs(Search, expr):
            return _rises(lhs, var, point) and var not in free_vars(rhs)
        case Binary(op="mul", lhs=lhs, rhs=rhs) if occurs(Search, expr):
            return any(
                var not in free_vars(factor)
                and point.is_nonnegative(factor)
                and _rises(other, var, point)
                for factor, other in ((lhs, rhs), (rhs, lhs))
            )
    return point.prover.proves_nonnegative(Binary("sub", _later(expr, var), expr))


def _later(expr: Expr, var: str) -> Expr:
    found: Expr = substitute(expr, {var: add(index_var(var), ONE)})
    return found
