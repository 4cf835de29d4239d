"""Constants, variables, selections and vectors."""

from __future__ import annotations

from gossamer_ir.core.constants import value_of
from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS, DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Broadcast,
    Const,
    IfThenElse,
    LaneReduce,
    Lanes,
    Ramp,
    ReduceOp,
    Select,
    Var,
    VScale,
)
from gossamer_llvm.emitter.folding import add, literal_value
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import binary_op, broadcast, select_value
from gossamer_llvm.emitter.lazy_choice import emit_lazy_choice
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import NO_SIGNED_ZEROS, constant_text, intrinsic_suffix, value_type
from gossamer_llvm.values.half_precision import round_to_half, widen_to_float32
from gossamer_llvm.values.lane_products import product_of_lanes

_REDUCERS = {"add": "add", "mul": "mul", "and": "and", "or": "or"}
_OF_BOOLS: dict[str, ReduceOp] = {"min": "and", "max": "or"}


def emit_const(emitter: FunctionEmitter, node: Const) -> Value:
    """Return a constant operand."""
    emitter.module.require_dtype(node.dtype)
    value_of(node)
    return Value(constant_text(node), node.dtype)


def emit_var(emitter: FunctionEmitter, node: Var) -> Value:
    """Return the operand to which the name is bound; for a handle, the address of its buffer."""
    bound = emitter.vars.values.get(node.name)
    if bound is not None:
        return bound
    return Value(emitter.buffers[node.name].address, "handle")


def emit_select(emitter: FunctionEmitter, node: Select) -> Value:
    """Emit a select; both values are evaluated."""
    condition, if_true = emitter.expr(node.condition), emitter.expr(node.if_true)
    return select_value(emitter, condition, if_true, emitter.expr(node.if_false))


def emit_if_then_else(emitter: FunctionEmitter, node: IfThenElse) -> Value:
    """Emit a conditional expression; only the chosen value is evaluated."""
    condition = emitter.expr(node.condition)
    if DType.parse(condition.dtype).is_vector:
        raise UnsupportedError(
            "llvm.if_then_else.vector",
            "An 'IfThenElse' with a vector condition is not supported yet.",
        )
    return emit_lazy_choice(
        emitter,
        condition.text,
        lambda: emitter.expr(node.if_true),
        lambda: emitter.expr(node.if_false),
    )


def emit_vscale(emitter: FunctionEmitter, node: VScale) -> Value:
    """Emit vscale, which the processor provides at run time."""
    emitter.module.require_scalable("whose lanes vscale counts")
    return vscale(emitter)


def vscale(emitter: FunctionEmitter) -> Value:
    """Return vscale of the language; LLVM's counts smaller units on some targets."""
    units = VSCALE_UNIT_BITS // emitter.module.target_info.vscale_bits
    count = emitter.call("i64", "llvm.vscale.i64", "")
    if units > 1:
        count = emitter.builder.value(f"udiv exact i64 {count}, {units}")
    return Value(count, "int64")


def emit_ramp(emitter: FunctionEmitter, node: Ramp) -> Value:
    """Emit the vector base + stride * lane; it wraps."""
    base, stride = emitter.expr(node.base), emitter.expr(node.stride)
    dtype = _vector_dtype(emitter, base, node.lanes)
    steps = lane_numbers(emitter, dtype)
    if literal_value(stride) != 1:
        factor = broadcast(emitter, stride, dtype)
        steps = binary_op(emitter, "mul", steps, factor.text)
    return add(emitter, broadcast(emitter, base, dtype), steps)


def emit_broadcast(emitter: FunctionEmitter, node: Broadcast) -> Value:
    """Emit the value in all lanes."""
    value = emitter.expr(node.value)
    return broadcast(emitter, value, _vector_dtype(emitter, value, node.lanes))


def emit_lane_reduce(emitter: FunctionEmitter, node: LaneReduce) -> Value:
    """Emit a reduction of the lanes of an expression."""
    return reduce_vector(emitter, node.op, emitter.expr(node.value))


def reduce_vector(emitter: FunctionEmitter, op: ReduceOp, value: Value) -> Value:
    """Return the reduction of lanes, the only operation in which float additions may be reassociated."""
    scalar = DType.parse(value.dtype).scalar
    if DType.parse(scalar).is_float:
        return _reduce_floats(emitter, op, value)
    # LLVM has no order of bools: True is -1 as a signed integer of one bit.
    if scalar == "bool":
        op = _OF_BOOLS.get(op, op)
    name = _REDUCERS.get(op)
    if name is None:
        prefix = "s" if DType.parse(scalar).kind == "int" else "u"
        name = f"{prefix}{op}"
    if op == "mul" and _needs_own_product(emitter, value):
        return Value(product_of_lanes(emitter, value, one="1", vscale=vscale(emitter)), scalar)
    function = f"llvm.vector.reduce.{name}.{intrinsic_suffix(value.type)}"
    return Value(emitter.call(value_type(scalar), function, value.typed), scalar)


def lane_numbers(emitter: FunctionEmitter, dtype_name: str) -> Value:
    """Return the integers 0, 1, ... in the lanes of dtype."""
    dtype = DType.parse(dtype_name)
    vector = value_type(dtype_name)
    if dtype.scalable:
        return Value(
            emitter.call(vector, f"llvm.stepvector.{intrinsic_suffix(vector)}", ""), dtype_name
        )
    element = value_type(dtype.scalar)
    lanes = ", ".join(f"{element} {lane}" for lane in range(dtype.lanes))
    return Value(f"<{lanes}>", dtype_name)


def _reduce_floats(emitter: FunctionEmitter, op: ReduceOp, value: Value) -> Value:
    # Partial results in half precision would each be rounded; this rounds once.
    wide = widen_to_float32(emitter, value)
    scalar = DType.parse(wide.dtype).scalar
    reduced = Value(_reduce_plain(emitter, op, wide, scalar), scalar)
    return (
        round_to_half(emitter, reduced, DType.parse(value.dtype).scalar)
        if wide != value
        else reduced
    )


def _reduce_plain(emitter: FunctionEmitter, op: ReduceOp, value: Value, scalar: str) -> str:
    result, shape = value_type(scalar), intrinsic_suffix(value.type)
    if op in ("min", "max"):
        function = f"llvm.vector.reduce.f{op}imum.{shape}"
        return emitter.call(result, function, value.typed, flags=NO_SIGNED_ZEROS)
    if op not in ("add", "mul"):
        raise UnsupportedError(f"llvm.lane_reduce.{op}", f"Floats have no operation '{op}'.")
    # A sum of negative zeros is one, which 0.0 as the start would turn into 0.0.
    start = constant_text(Const(scalar, "-0.0" if op == "add" else "1.0"))
    if op == "mul" and _needs_own_product(emitter, value):
        return product_of_lanes(emitter, value, one=start, vscale=vscale(emitter))
    function = f"llvm.vector.reduce.f{op}.{shape}"
    return emitter.call(result, function, f"{result} {start}, {value.typed}", flags="reassoc ")


def _needs_own_product(emitter: FunctionEmitter, value: Value) -> bool:
    return DType.parse(value.dtype).scalable and not emitter.module.target_info.has_lane_products


def _vector_dtype(emitter: FunctionEmitter, value: Value, lanes: Lanes) -> str:
    dtype = DType(value.dtype, lanes.count, lanes.scalable).text
    emitter.module.require_dtype(dtype)
    return dtype
