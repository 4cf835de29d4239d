"""Translates expressions to Python functions of the frame, one translator for each kind of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer_ir.core.build import is_handle
from gossamer_ir.core.dtypes import scalar_of
from gossamer_ir.core.expression_kinds import dtype_of, has_lanes
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret.expressions.math_values import numeric_function
from gossamer_ir.interpret.expressions.memory_access import search, translate_load
from gossamer_ir.interpret.expressions.operands import apply_to_one, apply_to_two
from gossamer_ir.interpret.expressions.operators import (
    COMPARE,
    binary_function,
    reduce_lanes,
    unary_function,
)
from gossamer_ir.interpret.frame import Eval, Frame
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.memory.values import (
    constant_value,
    conversion,
    decode_elements,
    encode_elements,
    numpy_type,
    storage_type,
)
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    IfThenElse,
    LaneReduce,
    Load,
    Ramp,
    Reinterpret,
    Search,
    Select,
    TransposeReduce,
    Unary,
    Var,
    VScale,
)


def _const(node: Const, translator: Translator) -> Eval:
    value = constant_value(node)

    def run(frame: Frame) -> Any:
        return value

    translator.constants[run] = value
    return run


def _var(node: Var, translator: Translator) -> Eval:
    name = node.name

    def run(frame: Frame) -> Any:
        try:
            return frame.values[name]
        except KeyError:
            raise InterpreterError(f"The variable '{name}' has no value here.") from None

    translator.vars[run] = name
    return run


def _unary(node: Unary, translator: Translator) -> Eval:
    function = unary_function(node.op, dtype_of(node))
    return apply_to_one(function, translator.expr(node.operand), translator)


def _binary(node: Binary, translator: Translator) -> Eval:
    function = binary_function(node.op, dtype_of(node))
    lhs, rhs = translator.expr(node.lhs), translator.expr(node.rhs)
    return apply_to_two(function, lhs, rhs, translator)


def _compare(node: Compare, translator: Translator) -> Eval:
    lhs, rhs = translator.expr(node.lhs), translator.expr(node.rhs)
    return apply_to_two(COMPARE[node.op], lhs, rhs, translator)


def _cast(node: Cast, translator: Translator) -> Eval:
    convert = conversion(dtype_of(node.value), node.dtype)
    return apply_to_one(convert, translator.expr(node.value), translator)


def _reinterpret(node: Reinterpret, translator: Translator) -> Eval:
    pointer = node.value
    if is_handle(pointer):
        return lambda frame: np.int64(frame.arrays[pointer.name].__array_interface__["data"][0])
    source, dtype, value = dtype_of(node.value), node.dtype, translator.expr(node.value)
    return lambda frame: decode_elements(
        encode_elements(value(frame), source).view(storage_type(dtype)), dtype
    )


def _select(node: Select, translator: Translator) -> Eval:
    condition = translator.expr(node.condition)
    if_true, if_false = translator.expr(node.if_true), translator.expr(node.if_false)
    if has_lanes(node.condition):
        return lambda frame: np.where(condition(frame), if_true(frame), if_false(frame))

    def run(frame: Frame) -> Any:
        # Both sides are evaluated, as the language defines:
        # an error in either one stops the program.
        sides = if_false(frame), if_true(frame)
        return sides[bool(condition(frame))]

    return run


def _if_then_else(node: IfThenElse, translator: Translator) -> Eval:
    if has_lanes(node.condition):
        raise UnsupportedError(
            "interpret.vector_condition",
            "The condition of if_then_else is a vector; expected a scalar.",
            hint="Use select, or a predicate on the loads.",
        )
    condition = translator.expr(node.condition)
    if_true, if_false = translator.expr(node.if_true), translator.expr(node.if_false)
    return lambda frame: if_true(frame) if condition(frame) else if_false(frame)


def _call(node: Call, translator: Translator) -> Eval:
    function, args = numeric_function(node.function, node.dtype), translator.exprs(node.args)
    return lambda frame: function(*args(frame))


def _vscale(node: VScale, translator: Translator) -> Eval:
    value = np.int64(translator.program.vscale)
    return lambda frame: value


def _ramp(node: Ramp, translator: Translator) -> Eval:
    base, stride = translator.expr(node.base), translator.expr(node.stride)
    steps = np.arange(translator.lanes(node.lanes), dtype=numpy_type(dtype_of(node.base)))
    if isinstance(node.stride, Const):  # nearly always 1
        offsets = constant_value(node.stride) * steps
        return lambda frame: base(frame) + offsets
    return lambda frame: base(frame) + stride(frame) * steps


def _broadcast(node: Broadcast, translator: Translator) -> Eval:
    value, count = translator.expr(node.value), translator.lanes(node.lanes)

    def run(frame: Frame) -> Any:
        lane = value(frame)
        lanes = np.empty(count, lane.dtype)
        lanes.fill(lane)
        return lanes

    return run


def _lane_reduce(node: LaneReduce, translator: Translator) -> Eval:
    function = reduce_lanes(node.op, scalar_of(dtype_of(node.value)))
    value = translator.expr(node.value)
    return lambda frame: function(value(frame))


def _transpose_reduce(node: TransposeReduce, translator: Translator) -> Eval:
    function = reduce_lanes(node.op, scalar_of(dtype_of(node)))
    values = translator.exprs(node.values)
    return lambda frame: np.array([function(value) for value in values(frame)])


EXPR_TRANSLATIONS: dict[type, Callable[[Any, Translator], Eval]] = {
    Const: _const,
    Var: _var,
    Unary: _unary,
    Binary: _binary,
    Compare: _compare,
    Cast: _cast,
    Reinterpret: _reinterpret,
    Select: _select,
    IfThenElse: _if_then_else,
    Call: _call,
    Load: translate_load,
    Search: search,
    VScale: _vscale,
    Ramp: _ramp,
    Broadcast: _broadcast,
    LaneReduce: _lane_reduce,
    TransposeReduce: _transpose_reduce,
}
