"""Checks of vector expressions."""

from __future__ import annotations

from gossamer_ir.nodes import Broadcast, LaneReduce, Lanes, Node, Ramp, VScale
from gossamer_ir.reducers import REDUCE_OPS
from gossamer_ir.verify.context import At, Context, ExprCheck
from gossamer_ir.verify.kinds import is_bool, is_integer, is_number, is_vector, known, vector_of
from gossamer_ir.verify.values import check_expr


def check_vscale(_ctx: Context, _node: VScale, _at: At) -> str:
    """An int64."""
    return "int64"


def check_ramp(ctx: Context, node: Ramp, at: At) -> str | None:
    """Base and stride are scalar integers of one dtype."""
    base = check_expr(ctx, node.base, at.down("base"))
    stride = check_expr(ctx, node.stride, at.down("stride"))
    if base is None or stride is None:
        return None
    if base != stride or not is_integer(base) or is_vector(base):
        _refuse(ctx, f"A ramp is made of {base} and {stride}, expected integers of one dtype", at)
        return None
    return _vector(ctx, base, node.lanes, at)


def check_broadcast(ctx: Context, node: Broadcast, at: At) -> str | None:
    """The value is a scalar."""
    dtype = check_expr(ctx, node.value, at.down("value"))
    if dtype is not None and is_vector(dtype):
        _refuse(ctx, f"A broadcast is made of {dtype}, expected a scalar", at)
        return None
    return None if dtype is None else _vector(ctx, dtype, node.lanes, at)


def check_lane_reduce(ctx: Context, node: LaneReduce, at: At) -> str | None:
    """The value is a vector for which the reducer is defined."""
    dtype = check_expr(ctx, node.value, at.down("value"))
    kind = None if dtype is None else known(dtype)
    if node.op not in REDUCE_OPS:
        ctx.report(
            "verify.reducer.unknown",
            f"'{node.op}' is no reducer, expected one of {', '.join(REDUCE_OPS)}.",
            at,
        )
    elif dtype is not None and kind is not None:
        if not kind.is_vector:
            _refuse(ctx, f"The lanes of {dtype} are reduced, expected a vector", at)
        elif not (is_bool(dtype) if node.op in ("and", "or") else is_number(dtype)):
            ctx.report("verify.dtype.operator", f"'{node.op}' is not defined for {dtype}.", at)
    return None if kind is None else kind.scalar


def _vector(ctx: Context, scalar: str, lanes: Lanes, at: At) -> str | None:
    if lanes.count >= (1 if lanes.scalable else 2):
        return vector_of(scalar, lanes)
    ctx.report("verify.lanes.count", f"A vector cannot have {lanes.count} lanes.", at)
    return None


def _refuse(ctx: Context, message: str, at: At) -> None:
    ctx.report("verify.vector.operand", f"{message}.", at)


VECTOR_EXPRESSIONS: dict[type[Node], ExprCheck] = {
    Ramp: check_ramp,
    Broadcast: check_broadcast,
    LaneReduce: check_lane_reduce,
}
"""The vectors of the stages loop and flat."""
