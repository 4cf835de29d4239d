"""Checks of vector expressions."""

from __future__ import annotations

from gossamer_ir.analysis.statements.reductions import REDUCE_OPS
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.operations import REDUCERS
from gossamer_ir.nodes import Broadcast, LaneReduce, Lanes, Ramp, TransposeReduce, VScale
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.expressions.check_expr import check_expr
from gossamer_ir.verify.expressions.dtype_queries import (
    is_integer,
    is_vector,
    parse_dtype,
    vector_of,
)
from gossamer_ir.verify.expressions.expression_checks import OPERAND_TESTS
from gossamer_support.message_texts import amount

MAX_VALUES = 64
"""Maximum number of vectors of a `TransposeReduce`."""


def check_vscale(_context: VerifyContext, _node: VScale, _place: NodePlace) -> str:
    """Return int64, the dtype of `vscale`."""
    return "int64"


def check_ramp(context: VerifyContext, node: Ramp, place: NodePlace) -> str | None:
    """Check that base and stride are scalar integers of one dtype."""
    base = check_expr(context, node.base, place.down("base"))
    stride = check_expr(context, node.stride, place.down("stride"))
    if base is None or stride is None:
        return None
    if base != stride or not is_integer(base) or is_vector(base):
        message = (
            f"A ramp has a base of {base} and a stride of {stride}; expected one integer dtype"
        )
        _report_dtype(context, message, place)
        return None
    return _vector(context, base, node.lanes, place)


def check_broadcast(context: VerifyContext, node: Broadcast, place: NodePlace) -> str | None:
    """Check that the value is a scalar."""
    dtype = check_expr(context, node.value, place.down("value"))
    if dtype is not None and is_vector(dtype):
        _report_dtype(
            context, f"The value of a broadcast has the dtype {dtype}; expected a scalar", place
        )
        return None
    return None if dtype is None else _vector(context, dtype, node.lanes, place)


def check_lane_reduce(context: VerifyContext, node: LaneReduce, place: NodePlace) -> str | None:
    """Check that the value is a vector whose lanes the reducer can combine."""
    dtype_name = check_expr(context, node.value, place.down("value"))
    dtype = None if dtype_name is None else parse_dtype(dtype_name)
    _check_reducer(context, node.op, dtype_name, place)
    return None if dtype is None else dtype.scalar


def check_transpose_reduce(
    context: VerifyContext, node: TransposeReduce, place: NodePlace
) -> str | None:
    """Check that the values are vectors of one dtype whose lanes the reducer can combine."""
    dtypes = [
        check_expr(context, value, place.down("values", number))
        for number, value in enumerate(node.values)
    ]
    if not _is_power_of_two(len(dtypes)) or not 2 <= len(dtypes) <= MAX_VALUES:
        message = f"The number of values is {len(dtypes)}; expected a power of two from 2 to {MAX_VALUES}."
        context.report("verify.lanes.count", message, place)
        return None
    first = dtypes[0]
    for number, dtype_name in enumerate(dtypes):
        if dtype_name is None or first is None:
            return None
        if dtype_name != first:
            message = (
                f"Vectors of {first} and {dtype_name} are reduced together; expected one dtype."
            )
            context.report("verify.dtype.operands", message, place.down("values", number))
            return None
    _check_reducer(context, node.op, first, place)
    dtype = None if first is None else parse_dtype(first)
    return None if dtype is None else DType(dtype.scalar, len(dtypes)).text


def _is_power_of_two(count: int) -> bool:
    return count.bit_count() == 1


def _check_reducer(
    context: VerifyContext, op: str, dtype_name: str | None, place: NodePlace
) -> None:
    dtype = None if dtype_name is None else parse_dtype(dtype_name)
    if op not in REDUCE_OPS:
        context.report(
            "verify.reducer.unknown",
            f"'{op}' is not a reducer; expected one of {', '.join(REDUCE_OPS)}.",
            place,
        )
    elif dtype_name is not None and dtype is not None:
        if not dtype.is_vector:
            _report_dtype(
                context, f"The lanes of {dtype_name} are reduced; expected a vector", place
            )
        elif not OPERAND_TESTS[REDUCERS[op].operands](dtype_name):
            context.report(
                "verify.dtype.operator", f"'{op}' is not defined for {dtype_name}.", place
            )


def _vector(context: VerifyContext, scalar: str, lanes: Lanes, place: NodePlace) -> str | None:
    fewest = 1 if lanes.scalable else 2
    if lanes.count >= fewest:
        return vector_of(scalar, lanes)
    message = f"A vector cannot have {amount(lanes.count, 'lane')}; expected at least {fewest}."
    context.report("verify.lanes.count", message, place)
    return None


def _report_dtype(context: VerifyContext, message: str, place: NodePlace) -> None:
    context.report("verify.vector.operand", f"{message}.", place)
