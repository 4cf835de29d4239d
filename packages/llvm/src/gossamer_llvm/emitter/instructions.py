"""Single instructions on operands, and vectors made of scalars."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.core.dtypes import DType
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import mask_dtype, value_type


def binary_op(emitter: FunctionEmitter, opcode: str, lhs: Value, rhs: str) -> Value:
    """Return an operation on two operands of one dtype, which its result has, too."""
    return Value(emitter.builder.value(f"{opcode} {lhs.typed}, {rhs}"), lhs.dtype)


def icmp(emitter: FunctionEmitter, predicate: str, lhs: Value, rhs: str) -> Value:
    """Return a comparison of integers; of vectors, the mask of the lanes in which it holds."""
    text = emitter.builder.value(f"icmp {predicate} {lhs.typed}, {rhs}")
    return Value(text, mask_dtype(lhs.dtype))


def select_value(
    emitter: FunctionEmitter, condition: Value, if_true: Value, if_false: Value
) -> Value:
    """Return one of two values; of vectors, in each lane if the condition is a mask. Both are evaluated."""
    text = f"select {condition.typed}, {if_true.typed}, {if_false.typed}"
    return Value(emitter.builder.value(text), if_true.dtype)


def broadcast(emitter: FunctionEmitter, value: Value, dtype_name: str) -> Value:
    """Return a scalar in all lanes of dtype."""
    dtype = DType.parse(dtype_name)
    if not dtype.is_vector:
        return value
    # A constant needs no instruction.
    if not value.text.startswith("%"):
        return Value(f"splat ({value.typed})", dtype_name)
    vector = value_type(dtype_name)
    lane = emitter.builder.value(f"insertelement {vector} poison, {value.typed}, i64 0")
    mask = value_type(dtype.with_scalar("int32").text)
    spread = emitter.builder.value(
        f"shufflevector {vector} {lane}, {vector} poison, {mask} zeroinitializer"
    )
    return Value(spread, dtype_name)


def insert_elements(emitter: FunctionEmitter, elements: Iterable[Value], dtype: str) -> Value:
    """Return the vector of a fixed dtype with these scalars in its lanes."""
    type_, vector = value_type(dtype), "poison"
    for lane, element in enumerate(elements):
        vector = emitter.builder.value(
            f"insertelement {type_} {vector}, {element.typed}, i64 {lane}"
        )
    return Value(vector, dtype)
