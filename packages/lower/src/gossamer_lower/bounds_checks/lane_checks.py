"""Bounds checks for all lanes of a vector access, from the check of one symbolic lane (`LANE`)."""

from __future__ import annotations

from gossamer_ir.analysis.lane_projection import LANE, lane_count
from gossamer_ir.core.build import ONE, ZERO, integer_value, sub
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Broadcast, Cast, Compare, Expr, LaneReduce, Lanes, Ramp, Unary
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute


def in_end_lanes(condition: Compare, index: Expr, *, lanes: Lanes) -> Expr:
    """Return a comparison that holds in all lanes, for an index that does not wrap: of a ramp with a
    constant stride, only the first or the last lane is compared."""
    if LANE.name not in free_vars(condition):
        return condition
    stride = integer_value(index.stride) if isinstance(index, Ramp) else None
    if stride is None:
        return in_all_lanes(condition, index, mask=None, lanes=lanes)
    is_first = (condition.op == "ge") == (stride >= 0)
    end = ZERO if is_first else sub(lane_count(lanes), ONE)
    result: Expr = substitute(condition, {LANE.name: end})
    return result


def in_all_lanes(condition: Compare, index: Expr, *, mask: Expr | None, lanes: Lanes) -> Expr:
    """Return a comparison that holds in all lanes that the mask enables, from the one in `LANE`."""
    if LANE.name in free_vars(condition):
        dtype = DType("int64", lanes.count, lanes.scalable).text
        every: Expr = Compare(condition.op, _cast_to(dtype, index), Broadcast(condition.rhs, lanes))
    elif mask is None:
        return condition
    else:
        every = Broadcast(condition, lanes)
    return LaneReduce("and", every if mask is None else Binary("or", Unary("not", mask), every))


def _cast_to(dtype: str, index: Expr) -> Expr:
    return index if dtype_of(index) == dtype else Cast(dtype, index)
