"""Constants, variables, choices and vectors."""

from __future__ import annotations

from gossamer_ir.constants import value_of
from gossamer_ir.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Broadcast,
    Const,
    Expr,
    IfThenElse,
    LaneReduce,
    Lanes,
    Ramp,
    ReduceOp,
    Select,
    Var,
    VScale,
)  # fmt: skip
from gossamer_llvm.folding import add, broadcast, literal
from gossamer_llvm.frame import Frame, Value
from gossamer_llvm.halves import narrowed, widened
from gossamer_llvm.types import NO_SIGNED_ZEROS, constant_text, suffix, value_type

_REDUCERS = {"add": "add", "mul": "mul", "and": "and", "or": "or"}
_OF_BOOLS: dict[str, ReduceOp] = {"min": "and", "max": "or"}


def emit_const(frame: Frame, node: Const) -> Value:
    """A constant operand."""
    frame.unit.require_dtype(node.dtype)
    value_of(node)
    return Value(constant_text(node), node.dtype)


def emit_var(frame: Frame, node: Var) -> Value:
    """The operand that the name is bound to; a handle is its buffer's address."""
    bound = frame.values.get(node.name)
    if bound is not None:
        return bound
    return Value(frame.buffers[node.name].address, "handle")


def emit_select(frame: Frame, node: Select) -> Value:
    """Both sides are evaluated."""
    condition, if_true = frame.expr(node.condition), frame.expr(node.if_true)
    if_false = frame.expr(node.if_false)
    text = f"select {condition.typed}, {if_true.typed}, {if_false.typed}"
    return Value(frame.text.value(text), if_true.dtype)


def emit_if_then_else(frame: Frame, node: IfThenElse) -> Value:
    """Only the chosen side is evaluated."""
    condition = frame.expr(node.condition)
    if DType.parse(condition.dtype).is_vector:
        raise UnsupportedError(
            "llvm.if_then_else.vector", "An IfThenElse with a vector condition is not lowered yet."
        )
    text = frame.text
    on_true, on_false, join = text.new_block(), text.new_block(), text.new_block()
    text.branch(condition.text, on_true, on_false)
    sides = [_side(frame, node.if_true, on_true, join), _side(frame, node.if_false, on_false, join)]
    text.begin(join)
    incoming = ", ".join(f"[ {value.text}, %{block} ]" for value, block in sides)
    first = sides[0][0]
    return Value(text.value(f"phi {first.type} {incoming}"), first.dtype)


def emit_vscale(frame: Frame, node: VScale) -> Value:
    """A number that the processor knows."""
    _require_lanes(frame, Lanes(1, scalable=True))
    return Value(frame.call("i64", "llvm.vscale.i64", ""), "int64")


def emit_ramp(frame: Frame, node: Ramp) -> Value:
    """The vector base + stride * lane, wrapping."""
    base, stride = frame.expr(node.base), frame.expr(node.stride)
    dtype = _vector_dtype(frame, base, node.lanes)
    steps = lane_numbers(frame, dtype)
    if literal(stride) != 1:
        factor = broadcast(frame, stride, dtype)
        steps = Value(frame.text.value(f"mul {steps.typed}, {factor.text}"), dtype)
    return add(frame, broadcast(frame, base, dtype), steps)


def emit_broadcast(frame: Frame, node: Broadcast) -> Value:
    """The value in every lane."""
    value = frame.expr(node.value)
    return broadcast(frame, value, _vector_dtype(frame, value, node.lanes))


def emit_lane_reduce(frame: Frame, node: LaneReduce) -> Value:
    """The only place where floating-point additions may be reassociated."""
    value = frame.expr(node.value)
    scalar = DType.parse(value.dtype).scalar
    if DType.parse(scalar).is_float:
        return _reduce_floats(frame, node, value)
    if scalar == "bool" and node.op in _OF_BOOLS:
        node = LaneReduce(_OF_BOOLS[node.op], node.value)
    name = _REDUCERS.get(node.op)
    if name is None:
        prefix = "s" if DType.parse(scalar).kind == "int" else "u"
        name = f"{prefix}{node.op}"
    function = f"llvm.vector.reduce.{name}.{suffix(value.type)}"
    return Value(frame.call(value_type(scalar), function, value.typed), scalar)


def lane_numbers(frame: Frame, dtype: str) -> Value:
    """The integers 0, 1, ... in the lanes of dtype."""
    kind = DType.parse(dtype)
    vector = value_type(dtype)
    if kind.scalable:
        return Value(frame.call(vector, f"llvm.stepvector.{suffix(vector)}", ""), dtype)
    element = value_type(kind.scalar)
    lanes = ", ".join(f"{element} {lane}" for lane in range(kind.lanes))
    return Value(f"<{lanes}>", dtype)


def _reduce_floats(frame: Frame, node: LaneReduce, value: Value) -> Value:
    wide = widened(frame, value)
    scalar = DType.parse(wide.dtype).scalar
    reduced = Value(_reduce_plain(frame, node, wide, scalar), scalar)
    return narrowed(frame, reduced, DType.parse(value.dtype).scalar) if wide != value else reduced


def _reduce_plain(frame: Frame, node: LaneReduce, value: Value, scalar: str) -> str:
    result, shape = value_type(scalar), suffix(value.type)
    if node.op in ("min", "max"):
        function = f"llvm.vector.reduce.f{node.op}imum.{shape}"
        return frame.call(result, function, value.typed, flags=NO_SIGNED_ZEROS)
    if node.op not in ("add", "mul"):
        raise UnsupportedError(
            f"llvm.lane_reduce.{node.op}", f"{node.op} of floats has no meaning."
        )
    start = constant_text(Const(scalar, "-0.0" if node.op == "add" else "1.0"))
    function = f"llvm.vector.reduce.f{node.op}.{shape}"
    return frame.call(result, function, f"{result} {start}, {value.typed}", flags="reassoc ")


def _side(frame: Frame, node: Expr, block: str, join: str) -> tuple[Value, str]:
    frame.text.begin(block)
    with frame.scope():
        value = frame.expr(node)
    end = frame.text.block
    frame.text.jump(join)
    return value, end


def _vector_dtype(frame: Frame, value: Value, lanes: Lanes) -> str:
    dtype = DType(value.dtype, lanes.count, lanes.scalable).text
    frame.unit.require_dtype(dtype)
    return dtype


def _require_lanes(frame: Frame, lanes: Lanes) -> None:
    frame.unit.require_dtype(DType("int64", lanes.count, lanes.scalable).text)
