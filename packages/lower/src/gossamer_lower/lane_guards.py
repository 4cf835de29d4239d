"""Accesses of vectors by what one lane of them does, and guards that hold for all lanes."""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer_ir import build
from gossamer_ir.dtypes import DType
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    LaneReduce,
    Lanes,
    Load,
    Ramp,
    Store,
    TransposeReduce,
    Unary,
    VScale,
)  # fmt: skip
from gossamer_ir.walk import free_vars, map_children, substitute

LANE = build.index_var("number of a lane")
"""Stands for the lane in what one lane does; no variable of a program has such a name."""


def lanes_of(access: Load | Store) -> Lanes | None:
    """The lanes of an access; None for one of a single element."""
    parts = (*access.indices, access.predicate)
    dtypes = [DType.parse(build.dtype_of(part)) for part in parts if part is not None]
    found = [dtype for dtype in dtypes if dtype.is_vector]
    return Lanes(found[0].lanes, found[0].scalable) if found else None


def count_of(lanes: Lanes) -> Expr:
    """How many lanes that is."""
    count = build.index(lanes.count)
    return build.mul(count, VScale()) if lanes.scalable else count


def in_one_lane(expr: Any) -> Any:
    """What an expression is in the lane `LANE`."""
    match expr:
        case Ramp(base=base, stride=stride):
            dtype = build.dtype_of(base)
            lane = LANE if dtype == "int64" else Cast(dtype, LANE)
            steps = Binary("mul", in_one_lane(stride), lane)
            return Binary("add", in_one_lane(base), steps)
        case Broadcast(value=value):
            return in_one_lane(value)
        case LaneReduce() | TransposeReduce():
            return expr
    inner = map_children(expr, in_one_lane)
    own: str | None = getattr(inner, "dtype", None)
    return inner if own is None else msgspec.structs.replace(inner, dtype=_scalar(own))


def at_the_ends(condition: Compare, index: Expr, *, lanes: Lanes) -> Expr:
    """A comparison of an index that does not wrap, in each lane: of a vector whose step is known only
    in the first or the last one."""
    if LANE.name not in free_vars(condition):
        return condition
    stride = build.integer_value(index.stride) if isinstance(index, Ramp) else None
    if stride is None:
        return in_all_lanes(condition, index, mask=None, lanes=lanes)
    is_first = (condition.op == "ge") == (stride >= 0)
    end = build.ZERO if is_first else build.sub(count_of(lanes), build.ONE)
    result: Expr = substitute(condition, {LANE.name: end})
    return result


def in_all_lanes(condition: Compare, index: Expr, *, mask: Expr | None, lanes: Lanes) -> Expr:
    """A comparison of an index in each lane that a mask lets through, from that in `LANE`."""
    if LANE.name in free_vars(condition):
        dtype = DType("int64", lanes.count, lanes.scalable).text
        every: Expr = Compare(condition.op, _as(dtype, index), Broadcast(condition.rhs, lanes))
    elif mask is None:
        return condition
    else:
        every = Broadcast(condition, lanes)
    return LaneReduce("and", every if mask is None else Binary("or", Unary("not", mask), every))


def _as(dtype: str, index: Expr) -> Expr:
    return index if build.dtype_of(index) == dtype else Cast(dtype, index)


def _scalar(dtype: str) -> str:
    return DType.parse(dtype).scalar
