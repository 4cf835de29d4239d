"""Projection of a vector expression to one of its lanes, as a scalar expression."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec.structs import replace

from gossamer_ir.core.build import add, index, index_var, integer_value, mul
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Cast,
    Expr,
    LaneReduce,
    Lanes,
    Load,
    Ramp,
    Store,
    TransposeReduce,
    Var,
    VScale,
)
from gossamer_ir.traversal.rewrite import with_children
from gossamer_ir.traversal.walk import children

LaneOverride: TypeAlias = Callable[[Expr], Expr | None]
"""Returns the lane of a vector that no scalar expression describes: a variable, or a transposed reduction
in a lane that is not constant."""


LANE = index_var("number of a lane")
"""The number of an arbitrary lane in proofs. The name is not an identifier, so it cannot clash."""


def lanes_of(expr: Expr) -> Lanes | None:
    """Return the lanes of a vector; None for a scalar."""
    return _lanes(dtype_of(expr))


@lru_cache(maxsize=256)
def _lanes(dtype_name: str) -> Lanes | None:
    dtype = DType.parse(dtype_name)
    return Lanes(dtype.lanes, dtype.scalable) if dtype.is_vector else None


def lanes_of_access(access: Load | Store) -> Lanes | None:
    """Return the lanes of an access; None for an access of a single element."""
    parts = (*access.indices, access.predicate)
    vectors = (lanes_of(part) for part in parts if part is not None)
    return next((lanes for lanes in vectors if lanes is not None), None)


def lane_count(lanes: Lanes) -> Expr:
    """Return the number of lanes as an expression."""
    count = index(lanes.count)
    return mul(count, VScale()) if lanes.scalable else count


def lane_of(expr: Expr, lane: Expr, *, kept: LaneOverride = lambda _: None) -> Expr | None:
    """Return the value of a vector in one lane; a scalar itself. None if no expression describes the lane and
    `kept` returns None, too.

    >>> from gossamer_ir.script import print_expr
    >>> print_expr(lane_of(Ramp(index_var("i"), index_var("k"), Lanes(8)), index_var("lane")))
    'i + k * lane'
    >>> lane_of(Var("v", "int64x8"), index_var("lane"))
    """
    if lanes_of(expr) is None:
        return expr
    rule = LANE_RULES.get(type(expr), _elementwise)
    return rule(expr, lane, kept)


def in_lane(expr: Expr, lane: Expr) -> Expr:
    """Project as `lane_of` does, for proofs. A vector without a scalar description becomes a load from an
    array of its own, about which nothing is known, except that equal lanes are equal.

    >>> from gossamer_ir.script import print_expr
    >>> print_expr(in_lane(Binary("add", *[Var(name, "int64x4") for name in "vw"]), index_var("lane")))
    'v[lane] + w[lane]'
    """

    def load_lane(vector: Expr) -> Expr:
        name = vector.name if isinstance(vector, Var) else repr(vector)
        return Load(name, (lane,), DType.parse(dtype_of(vector)).scalar)

    projected = lane_of(expr, lane, kept=load_lane)
    assert projected is not None
    return projected


def _ramp(expr: Ramp, lane: Expr, kept: LaneOverride) -> Expr:
    dtype = dtype_of(expr.base)
    # Only of int64: narrower lanes wrap in their own width, which int64 arithmetic would not show.
    if dtype == "int64":
        return add(expr.base, mul(expr.stride, lane))
    number = integer_value(lane)
    narrow = Cast(dtype, lane) if number is None else constant(number, dtype)
    return Binary("add", expr.base, Binary("mul", expr.stride, narrow))


def _elementwise(expr: Any, lane: Expr, kept: LaneOverride) -> Expr | None:
    """Return the projection of an elementwise operation: the operation on the lanes of its operands."""
    below: list[Any] = children(expr)
    operands = [lane_of(operand, lane, kept=kept) for operand in below]
    if None in operands:
        return None
    scalar: Expr = with_children(expr, operands)
    dtype: str | None = getattr(scalar, "dtype", None)
    return scalar if dtype is None else replace(scalar, dtype=DType.parse(dtype).scalar)


def _apply_override(expr: Expr, _lane: Expr, kept: LaneOverride) -> Expr | None:
    return kept(expr)


def _project_transpose(expr: TransposeReduce, lane: Expr, kept: LaneOverride) -> Expr | None:
    number = integer_value(lane)
    return kept(expr) if number is None else LaneReduce(expr.op, expr.values[number])


LANE_RULES: dict[type[Any], Callable[[Any, Expr, LaneOverride], Expr | None]] = {
    Var: _apply_override,
    Ramp: _ramp,
    Broadcast: lambda expr, lane, kept: expr.value,
    TransposeReduce: _project_transpose,
}
"""The types of expressions that are neither scalar nor elementwise (`core.expression_kinds`)."""
