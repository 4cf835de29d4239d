"""Integer arithmetic on operands with constant folding, so that addresses in unrolled code are constants."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.core.dtypes import DType
from gossamer_llvm.emitter.emitters import FunctionEmitter, Value
from gossamer_llvm.emitter.types import integer_text, value_type


def literal_value(value: Value) -> int | None:
    """Return the integer of a constant operand; None for a computed one.

    >>> literal_value(Value("-7", "int64")), literal_value(Value("%v1", "int64"))
    (-7, None)
    """
    text = value.text
    return int(text) if text.lstrip("-").isdigit() else None


def index_constant(value: int) -> Value:
    """Return an int64 constant as operand."""
    return Value(integer_text(value, "int64"), "int64")


def add(emitter: FunctionEmitter, lhs: Value, rhs: Value, *, flags: str = "") -> Value:
    """Return the sum. It wraps, unless `flags` promise that it does not."""
    left, right = literal_value(lhs), literal_value(rhs)
    if left is not None and right is not None:
        return Value(integer_text(left + right, lhs.dtype), lhs.dtype)
    if left == 0:
        return rhs
    if right == 0:
        return lhs
    return _operation(emitter, f"add{flags}", lhs, rhs)


def sub(emitter: FunctionEmitter, lhs: Value, rhs: Value) -> Value:
    """Return the difference. It wraps."""
    left, right = literal_value(lhs), literal_value(rhs)
    if left is not None and right is not None:
        return Value(integer_text(left - right, lhs.dtype), lhs.dtype)
    return lhs if right == 0 else _operation(emitter, "sub", lhs, rhs)


def mul(emitter: FunctionEmitter, lhs: Value, rhs: Value, *, flags: str = "") -> Value:
    """Return the product. It wraps, unless `flags` promise that it does not."""
    left, right = literal_value(lhs), literal_value(rhs)
    if left is not None and right is not None:
        return Value(integer_text(left * right, lhs.dtype), lhs.dtype)
    if left == 0 or right == 0:
        return Value(integer_text(0, lhs.dtype), lhs.dtype)
    if left == 1:
        return rhs
    if right == 1:
        return lhs
    return _operation(emitter, f"mul{flags}", lhs, rhs)


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


def _operation(emitter: FunctionEmitter, operation: str, lhs: Value, rhs: Value) -> Value:
    return Value(emitter.builder.value(f"{operation} {lhs.typed}, {rhs.text}"), lhs.dtype)
