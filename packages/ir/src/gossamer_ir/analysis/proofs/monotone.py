"""Proves that an expression never decreases from one iteration of a loop to the next.

See `dependence.ordered_accesses` for the order of whole sets of accesses, including inner loops.
"""

from __future__ import annotations

from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.build import ONE, add, index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Cast, Compare, Expr, For, Load, Search, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute

_LESSER, _GREATER = index_var("_lesser"), index_var("_greater")
"""Two arbitrary indices of one array, in proofs."""


def is_monotone(expr: Expr, loop: For, point: ProgramPoint) -> bool:
    """Return whether an integer expression is proved never to decrease and never to wrap as a loop runs,
    including the value after the last iteration. `point` must be inside the loop.

    >>> from gossamer_ir.core.build import ZERO, floordiv, index, widen
    >>> from gossamer_ir.nodes import Function, Monotone
    >>> point = ProgramPoint(Function("f", (), (), facts=(Monotone("P"),)))
    >>> i, loop = index_var("i"), For("i", ZERO, index(8), ())
    >>> point.assume_loop(loop)
    >>> offset, other = (widen(Load(name, (i,), "int32")) for name in "PQ")
    >>> [is_monotone(at, loop, point) for at in (floordiv(add(offset, i), index(4)), other)]
    [True, False]
    """
    if not point.is_stable(expr):
        return False
    # A monotone expression of monotone operands lies between its values at the ends, so these suffice.
    ends = (loop.start, add(loop.start, loop.extent))
    if not all(point.is_exact(substitute(expr, {loop.var: end})) for end in ends):
        return False
    return _is_monotone_in(expr, loop.var, point)


def _is_monotone_in(expr: Expr, var_name: str, point: ProgramPoint) -> bool:
    # The loop variable itself, or an invariant expression.
    if type(expr) is Var or var_name not in free_vars(expr):
        return True
    # The structural rule first. The prover is needed for i - i // 2,
    # whose operands rise but are subtracted.
    return _operands_rise(expr, var_name, point) or _is_at_most_next(expr, var_name, point)


def _operands_rise(expr: Expr, var_name: str, point: ProgramPoint) -> bool:
    """Return whether an expression never decreases because its operands do not."""
    match expr:
        case Cast(dtype="int64", value=value):
            return _is_kept_by_int64(dtype_of(value)) and _is_monotone_in(value, var_name, point)
        case Binary(op="add", lhs=lhs, rhs=rhs):
            return _is_monotone_in(lhs, var_name, point) and _is_monotone_in(rhs, var_name, point)
        case Binary(op="sub", lhs=lhs, rhs=rhs):
            # With an invariant subtrahend only: subtracting what rises may fall.
            return var_name not in free_vars(rhs) and _is_monotone_in(lhs, var_name, point)
        case Binary(op="mul", lhs=lhs, rhs=rhs):
            return any(
                _is_nonnegative(factor, var_name, point) and _is_monotone_in(other, var_name, point)
                for factor, other in ((lhs, rhs), (rhs, lhs))
            )
        case Binary(op="floordiv", lhs=lhs, rhs=rhs):
            return _is_nonnegative(rhs, var_name, point) and _is_monotone_in(lhs, var_name, point)
        case Load(indices=(*outer, last), predicate=None):
            is_fixed = var_name not in free_vars(*outer)
            # Another outer index is another row, and rows are not ordered with each other.
            return is_fixed and _is_sorted(expr, point) and _is_monotone_in(last, var_name, point)
        case Search(kind="lower" | "upper", prefix=prefix, begin=begin, end=end, value=value):
            is_fixed = var_name not in free_vars(*prefix, begin, end)
            return is_fixed and _is_monotone_in(value, var_name, point)
    return False


def _is_kept_by_int64(dtype_name: str) -> bool:
    dtype = DType.parse(dtype_name)
    return dtype.is_integer and (dtype.kind == "int" or dtype.bits < 64)


def _is_nonnegative(factor: Expr, var_name: str, point: ProgramPoint) -> bool:
    """Return whether a factor or divisor is loop invariant and not negative."""
    return var_name not in free_vars(factor) and point.is_nonnegative(factor)


def _is_sorted(load: Load, point: ProgramPoint) -> bool:
    """Return whether loaded values never decrease with the last index."""
    *outer, _ = load.indices
    first, second = (Load(load.buffer, (*outer, at), load.dtype) for at in (_LESSER, _GREATER))
    with point.scope():
        point.assume(Compare("le", _LESSER, _GREATER))
        return point.prover.proves_nonnegative(Binary("sub", second, first))


def _is_at_most_next(expr: Expr, var_name: str, point: ProgramPoint) -> bool:
    """Return whether the prover shows that the value is at most that of the next iteration."""
    later: Expr = substitute(expr, {var_name: add(index_var(var_name), ONE)})
    return point.is_at_most(expr, later)
