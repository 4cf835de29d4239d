"""Unary and binary operations, comparisons, casts and math calls, all defined for every operand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from gossamer_ir.core.dtypes import DType, DTypeKind
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Binary, BinaryOp, Call, Cast, Compare, Reinterpret, Unary, UnaryOp
from gossamer_llvm.emitter import folding
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import binary_op, icmp, select_value
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import (
    NO_SIGNED_ZEROS,
    integer_text,
    intrinsic_suffix,
    mask_dtype,
    splat,
    value_type,
)
from gossamer_llvm.values import division
from gossamer_llvm.values.half_precision import is_half, round_to_half, widen_to_float32
from gossamer_llvm.values.masks import lane_mask

EmitBinary: TypeAlias = Callable[[FunctionEmitter, Value, Value], Value]
"""Emits an operation on two operands of the same dtype."""

_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
_ORDERED = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
CALL_INTRINSICS = {
    "sqrt": "sqrt",
    "abs": "fabs",
    "fma": "fma",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "roundeven",
    "popcount": "ctpop",
    "ctz": "cttz",
}
"""The intrinsic of each function that is an instruction of some CPU."""
_FLAGS = {"cttz": ", i1 false"}
"""Further arguments of an intrinsic: `cttz` of 0 is the number of bits, not poison."""


def emit_unary(emitter: FunctionEmitter, node: Unary) -> Value:
    """Emit an operation of one operand."""
    value = emitter.expr(node.operand)
    return Value(emitter.builder.value(UNARY_INSTRUCTIONS[node.op](value)), value.dtype)


def _negation(value: Value) -> str:
    dtype = DType.parse(value.dtype)
    # The sign bit only: through float32 the payload of a NaN would change.
    if is_half(value.dtype):
        return f"xor {value.typed}, {integer_text(1 << dtype.bits - 1, value.dtype)}"
    if dtype.is_float:
        return f"fneg {value.typed}"
    return f"sub {value.type} {integer_text(0, value.dtype)}, {value.text}"


def _complement(value: Value) -> str:
    ones = "true" if value.type == "i1" else integer_text(-1, value.dtype)
    return f"xor {value.typed}, {ones}"


UNARY_INSTRUCTIONS: dict[UnaryOp, Callable[[Value], str]] = {
    "neg": _negation,
    "not": _complement,
    "bitnot": _complement,
}
"""The instruction of each operation of one operand."""


def emit_binary(emitter: FunctionEmitter, node: Binary) -> Value:
    """Emit a binary operation; both operands are evaluated, even of `and` and `or`."""
    if node.op == "floordiv" and (factor := division.vscale_multiple(node.rhs)) is not None:
        return division.floordiv_by_vscale(emitter, emitter.expr(node.lhs), factor)
    return emit_operation(emitter, node.op, emitter.expr(node.lhs), emitter.expr(node.rhs))


def emit_operation(emitter: FunctionEmitter, op: BinaryOp, lhs: Value, rhs: Value) -> Value:
    """Emit the operation on two operands of the same dtype."""
    if is_half(lhs.dtype):
        # One rounding of the float32 result equals one of the exact result:
        # float32 has more than twice the bits.
        wide = emit_operation(
            emitter, op, widen_to_float32(emitter, lhs), widen_to_float32(emitter, rhs)
        )
        return round_to_half(emitter, wide, lhs.dtype)
    emit = BINARY_EMITTERS[DType.parse(lhs.dtype).kind].get(op)
    if emit is None:
        raise UnsupportedError(
            f"llvm.{op}", f"The operation '{op}' of {lhs.dtype} cannot be lowered to LLVM."
        )
    return emit(emitter, lhs, rhs)


def emit_compare(emitter: FunctionEmitter, node: Compare) -> Value:
    """Emit a comparison. With NaN, `ne` is true and all others are false."""
    lanes = lane_mask(emitter, node)
    if lanes is not None:
        dtype_name = dtype_of(node)
        return (
            lanes if lanes.dtype == dtype_name else Value(splat(lanes.text, dtype_name), dtype_name)
        )
    lhs, rhs = (widen_to_float32(emitter, emitter.expr(side)) for side in (node.lhs, node.rhs))
    dtype = DType.parse(lhs.dtype)
    if dtype.is_float:
        text = f"fcmp {_ORDERED[node.op]} {lhs.typed}, {rhs.text}"
    else:
        table = _SIGNED if dtype.kind == "int" else _UNSIGNED
        text = f"icmp {table[node.op]} {lhs.typed}, {rhs.text}"
    return Value(emitter.builder.value(text), mask_dtype(lhs.dtype))


def emit_cast(emitter: FunctionEmitter, node: Cast) -> Value:
    """Emit a cast. Integers wrap; floats out of the range of an integer saturate, and NaN becomes 0."""
    emitter.module.require_dtype(node.dtype)
    value = emitter.expr(node.value)
    if value.dtype == node.dtype:
        return value
    if is_half(node.dtype):
        return round_to_half(emitter, _as_wide_float(emitter, value), node.dtype)
    return _plain_cast(emitter, widen_to_float32(emitter, value), node.dtype)


def _as_wide_float(emitter: FunctionEmitter, value: Value) -> Value:
    """Return the value as float32 or float64, before it is rounded to 16 bits. An integer is converted to
    a float that is wide enough."""
    dtype = DType.parse(value.dtype)
    if dtype.is_float:
        return widen_to_float32(emitter, value)
    # float32 would round an int32 once, and the half a second time.
    scalar = "float64" if dtype.bits > 16 else "float32"
    return _plain_cast(emitter, value, dtype.with_scalar(scalar).text)


def _plain_cast(emitter: FunctionEmitter, value: Value, dtype: str) -> Value:
    """Emit a cast between dtypes that LLVM has."""
    if value.dtype == dtype:
        return value
    source, target = DType.parse(value.dtype), DType.parse(dtype)
    if target.kind == "bool":
        return Value(_nonzero(emitter, value), dtype)
    operation = _cast_operation(source, target)
    if operation is None:
        return Value(value.text, dtype)
    number = folding.literal_value(value)
    if operation in ("sext", "zext", "trunc") and number is not None:
        return Value(_cast_literal(number, source, dtype), dtype)
    if operation.startswith("llvm."):
        name = f"{operation}.{intrinsic_suffix(value_type(dtype))}.{intrinsic_suffix(value.type)}"
        return Value(emitter.call(value_type(dtype), name, value.typed), dtype)
    text = f"{operation} {value.typed} to {value_type(dtype)}"
    return Value(emitter.builder.value(text), dtype)


def emit_reinterpret(emitter: FunctionEmitter, node: Reinterpret) -> Value:
    """Emit a reinterpretation of the same bits."""
    emitter.module.require_dtype(node.dtype)
    value = emitter.expr(node.value)
    target = value_type(node.dtype)
    if target == value.type:
        return Value(value.text, node.dtype)
    operation = "ptrtoint" if value.dtype == "handle" else "bitcast"
    return Value(emitter.builder.value(f"{operation} {value.typed} to {target}"), node.dtype)


def emit_call(emitter: FunctionEmitter, node: Call) -> Value:
    """Emit a call of a math function that is an instruction on the target."""
    dtype = DType.parse(node.dtype)
    if node.function == "abs" and dtype.is_integer:
        value = emitter.expr(node.args[0])
        return value if dtype.kind == "uint" else _integer_abs(emitter, value)
    if node.function == "tf32" and not is_half(node.dtype):
        # Imported late: few programs round operands.
        from gossamer_llvm.values.tf32 import round_to_tf32

        return round_to_tf32(emitter, emitter.expr(node.args[0]))
    # The fma of half precision is not computed in float32, because it would be rounded twice.
    is_fused_half = is_half(node.dtype) and len(node.args) > 1
    if (
        node.function not in CALL_INTRINSICS.keys() & emitter.module.target_info.functions
        or is_fused_half
    ):
        raise UnsupportedError(
            f"llvm.call.{node.function}",
            f"The function '{node.function}' is not an instruction of the target.",
        )
    values = [widen_to_float32(emitter, emitter.expr(arg)) for arg in node.args]
    intrinsic = CALL_INTRINSICS[node.function]
    name = f"llvm.{intrinsic}.{intrinsic_suffix(values[0].type)}"
    arguments = ", ".join(value.typed for value in values) + _FLAGS.get(intrinsic, "")
    result = Value(emitter.call(values[0].type, name, arguments), values[0].dtype)
    return round_to_half(emitter, result, node.dtype) if is_half(node.dtype) else result


def _instruction(opcode: str) -> EmitBinary:
    return lambda emitter, lhs, rhs: binary_op(emitter, opcode, lhs, rhs.text)


def _contracting(opcode: str) -> EmitBinary:
    plain, contracted = _instruction(opcode), _instruction(f"{opcode} contract")

    def emit(emitter: FunctionEmitter, lhs: Value, rhs: Value) -> Value:
        # Scalars of a CPU do not contract. A sum of products waits for its own last addition, and a fused one
        # takes longer than a plain one on some CPUs (Zen 5: 4 cycles instead of 2), and is never faster. A
        # GPU runs other threads meanwhile, and so needs fewer instructions.
        contracts = DType.parse(lhs.dtype).is_vector or emitter.module.target_info.is_device
        return (contracted if contracts else plain)(emitter, lhs, rhs)

    return emit


def _intrinsic(name: str, *, flags: str = "") -> EmitBinary:
    def emit(emitter: FunctionEmitter, lhs: Value, rhs: Value) -> Value:
        function = f"llvm.{name}.{intrinsic_suffix(lhs.type)}"
        arguments = f"{lhs.typed}, {rhs.typed}"
        return Value(emitter.call(lhs.type, function, arguments, flags=flags), lhs.dtype)

    return emit


def _shift(opcode: str) -> EmitBinary:
    """Return the emitter of a shift: shifting out all bits results in 0, or in -1 for a negative number
    shifted right."""
    return partial(_emit_shift, opcode)


def _emit_shift(opcode: str, emitter: FunctionEmitter, lhs: Value, rhs: Value) -> Value:
    dtype = DType.parse(lhs.dtype)
    # LLVM leaves shifts by the width or more undefined, and masks of the count differ between CPUs.
    last = integer_text(dtype.bits - 1, lhs.dtype)
    name = f"llvm.umin.{intrinsic_suffix(lhs.type)}"
    count = emitter.call(lhs.type, name, f"{rhs.typed}, {lhs.type} {last}")
    moved = binary_op(emitter, opcode, lhs, count)
    if opcode == "ashr":
        return moved
    fits = icmp(emitter, "ule", rhs, last)
    return select_value(emitter, fits, moved, Value(integer_text(0, lhs.dtype), lhs.dtype))


def _integer_abs(emitter: FunctionEmitter, value: Value) -> Value:
    name = f"llvm.abs.{intrinsic_suffix(value.type)}"
    return Value(emitter.call(value.type, name, f"{value.typed}, i1 false"), value.dtype)


def _nonzero(emitter: FunctionEmitter, value: Value) -> str:
    if DType.parse(value.dtype).is_float:
        return emitter.builder.value(f"fcmp une {value.typed}, zeroinitializer")
    return emitter.builder.value(f"icmp ne {value.typed}, {integer_text(0, value.dtype)}")


def _cast_operation(source: DType, target: DType) -> str | None:
    """Return the instruction or intrinsic that casts; None if both dtypes have the same bits."""
    if source.is_float and target.is_float:
        return "fpext" if target.bits > source.bits else "fptrunc"
    if source.is_float:
        return "llvm.fptosi.sat" if target.kind == "int" else "llvm.fptoui.sat"
    if target.is_float:
        return "sitofp" if source.kind == "int" else "uitofp"
    if target.bits == source.bits:
        return None
    if target.bits < source.bits:
        return "trunc"
    return "sext" if source.kind == "int" else "zext"


def _cast_literal(number: int, source: DType, dtype: str) -> str:
    is_signed = source.kind == "int"
    return integer_text(number if is_signed else number % (1 << source.bits), dtype)


_BITS: dict[BinaryOp, EmitBinary] = {
    "bitand": _instruction("and"),
    "bitor": _instruction("or"),
    "bitxor": _instruction("xor"),
}

_INTEGERS: dict[BinaryOp, EmitBinary] = {
    **_BITS,
    "add": folding.add,
    "sub": folding.sub,
    "mul": folding.mul,
    "floordiv": division.floordiv,
    "floormod": division.floormod,
    "shl": _shift("shl"),
}

BINARY_EMITTERS: dict[DTypeKind, dict[BinaryOp, EmitBinary]] = {
    # Not as integers: the signed i1 of true would be -1.
    "bool": {
        **_BITS,
        "and": _instruction("and"),
        "or": _instruction("or"),
        "min": _instruction("and"),
        "max": _instruction("or"),
    },
    "int": {
        **_INTEGERS,
        "min": _intrinsic("smin"),
        "max": _intrinsic("smax"),
        "shr": _shift("ashr"),
    },
    "uint": {
        **_INTEGERS,
        "min": _intrinsic("umin"),
        "max": _intrinsic("umax"),
        "shr": _shift("lshr"),
    },
    "float": {
        "add": _contracting("fadd"),
        "sub": _contracting("fsub"),
        "mul": _contracting("fmul"),
        "div": _instruction("fdiv"),
        # minimum and maximum propagate NaN, as NumPy does; minnum and maxnum would drop it.
        "min": _intrinsic("minimum", flags=NO_SIGNED_ZEROS),
        "max": _intrinsic("maximum", flags=NO_SIGNED_ZEROS),
    },
    "handle": {},
}
"""The emitter of each operation, by the kind of its operands."""
