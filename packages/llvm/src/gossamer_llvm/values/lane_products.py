"""The product of the lanes of a scalable vector, for targets on which LLVM has no reduction for it.

Halves are multiplied until a lane is left for each unit of LLVM's vscale; a loop multiplies these.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS, DType
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import intrinsic_suffix, value_type


def product_of_lanes(emitter: FunctionEmitter, value: Value, *, one: str, vscale: Value) -> str:
    """Return the product of lanes that are computed with as LLVM has them; `one` is the constant of their
    type."""
    is_float = DType.parse(value.dtype).is_float
    multiply = "fmul reassoc" if is_float else "mul"
    units = VSCALE_UNIT_BITS // emitter.module.target_info.vscale_bits
    while DType.parse(value.dtype).lanes > units:
        low, high = _halves(emitter, value, units)
        product = emitter.builder.value(f"{multiply} {low.typed}, {high.text}")
        value = Value(product, low.dtype)
    count = emitter.builder.value(f"mul {vscale.typed}, {units}")
    return _product_by_loop(emitter, value, multiply, one=one, count=count)


def _halves(emitter: FunctionEmitter, value: Value, units: int) -> tuple[Value, Value]:
    dtype = DType.parse(value.dtype)
    half = DType(dtype.scalar, dtype.lanes // 2, scalable=True).text
    type_ = value_type(half)
    name = f"llvm.vector.extract.{intrinsic_suffix(type_)}.{intrinsic_suffix(value.type)}"
    # Lanes of LLVM's units.
    firsts = (0, dtype.lanes // 2 // units)
    low, high = (emitter.call(type_, name, f"{value.typed}, i64 {first}") for first in firsts)
    return Value(low, half), Value(high, half)


def _product_by_loop(
    emitter: FunctionEmitter, value: Value, multiply: str, *, one: str, count: str
) -> str:
    builder, type_ = emitter.builder, value_type(DType.parse(value.dtype).scalar)
    before, inside, after = builder.block, builder.new_block(), builder.new_block()
    builder.enter_loop()
    builder.fall_into(inside)
    next_lane, product = builder.forward(), builder.forward()
    lane = builder.value(f"phi i64 [ 0, %{before} ], [ {next_lane}, %{inside} ]")
    sofar = builder.value(f"phi {type_} [ {one}, %{before} ], [ {product}, %{inside} ]")
    factor = builder.value(f"extractelement {value.typed}, i64 {lane}")
    builder.define(product, f"{multiply} {type_} {sofar}, {factor}")
    builder.define(next_lane, f"add nuw nsw i64 {lane}, 1")
    builder.branch(builder.value(f"icmp eq i64 {next_lane}, {count}"), after, inside)
    builder.leave_loop()
    builder.begin(after)
    return product
