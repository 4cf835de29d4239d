"""Integer arithmetic on operands with constant folding, so that addresses in unrolled code are constants."""

from __future__ import annotations

from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import binary_op
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import integer_text


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
    return binary_op(emitter, f"add{flags}", lhs, rhs.text)


def sub(emitter: FunctionEmitter, lhs: Value, rhs: Value) -> Value:
    """Return the difference. It wraps."""
    left, right = literal_value(lhs), literal_value(rhs)
    if left is not None and right is not None:
        return Value(integer_text(left - right, lhs.dtype), lhs.dtype)
    return lhs if right == 0 else binary_op(emitter, "sub", lhs, rhs.text)


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
    return binary_op(emitter, f"mul{flags}", lhs, rhs.text)
