"""One lane of a vector expression, as a scalar expression."""

from __future__ import annotations

from gossamer_ir import build
from gossamer_ir.dtypes import DType
from gossamer_ir.nodes import Binary, Broadcast, Cast, Expr, Load, Ramp, Reinterpret, Unary


def lane_of(expr: Expr, lane: int) -> Expr | None:
    """The scalar that stands in a lane of an unmasked index vector; None where it is not known.

    >>> from gossamer_ir.nodes import Lanes
    >>> lane_of(Ramp(build.index_var("i"), build.index(2), Lanes(4)), 3)
    Binary(op='add', lhs=Var(name='i', dtype='int64'), rhs=Const(dtype='int64', text='6'))
    """
    if not DType.parse(build.dtype_of(expr)).is_vector:
        return expr
    match expr:
        case Ramp():
            return build.add(expr.base, build.mul(expr.stride, build.index(lane)))
        case Broadcast():
            return expr.value
        case Cast() | Reinterpret():
            value = lane_of(expr.value, lane)
            return None if value is None else type(expr)(DType.parse(expr.dtype).scalar, value)
        case Unary():
            operand = lane_of(expr.operand, lane)
            return None if operand is None else Unary(expr.op, operand)
        case Binary():
            lhs, rhs = lane_of(expr.lhs, lane), lane_of(expr.rhs, lane)
            return None if lhs is None or rhs is None else Binary(expr.op, lhs, rhs)
        case Load(predicate=None):
            return load_of_lane(expr, lane)
    return None


def load_of_lane(load: Load, lane: int) -> Load | None:
    """The scalar load that an unmasked vector load does in a lane."""
    indices = [lane_of(index, lane) for index in load.indices]
    known = tuple(index for index in indices if index is not None)
    if len(known) < len(indices):
        return None
    return Load(load.buffer, known, DType.parse(load.dtype).scalar)
