"""Predicates of loads and stores: constant ones, and the cheap form of a mask of consecutive lanes."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.bounds.value_bounds import MAX_VSCALE
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.integers import MAX_INT64
from gossamer_ir.nodes import Broadcast, Compare, Const, Expr, Lanes, Ramp
from gossamer_llvm.emitter.folding import index_constant, literal_value
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import broadcast, icmp
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import intrinsic_suffix, value_type
from gossamer_llvm.values.scalars_and_vectors import lane_numbers

ON = Value("true", "bool")
OFF = Value("false", "bool")
"""The predicates of all lanes, and of no lane, for any number of lanes."""


def emit_predicate(emitter: FunctionEmitter, node: Expr | None) -> Value:
    """Return the mask; `ON` or `OFF` if it is constant."""
    constant = _constant_mask(node)
    if constant is not None:
        return ON if constant else OFF
    assert node is not None
    if isinstance(node, Compare):
        mask = lane_mask(emitter, node)
        if mask is not None:
            return mask
    return emitter.expr(node)


# Other expressions: not optimized.
def _constant_mask(node: Expr | None) -> bool | None:
    match node:
        case None:
            return True
        case Const(text=text):
            return text == "True"
        case Broadcast(value=value):
            return _constant_mask(value) if isinstance(value, Const) else None
    return None


# Other expressions: not optimized.
def lane_mask(emitter: FunctionEmitter, node: Compare) -> Value | None:
    """Return the mask of `lt(Ramp(base, 1, L), Broadcast(limit, L))`, and of `ge` where masks are in vector
    registers; None for other comparisons.

    Without an instruction for it, it compares 32-bit indices if all fit, or else 32-bit lane numbers with the
    number of lanes left, a quarter of the work of comparing 64-bit indices. This is wrong if the ramp may
    wrap, because its first lanes are not the lowest then.
    """
    loop_mask = emitter.vars.masks.get(node)
    if loop_mask is not None:
        return loop_mask
    ramp, limit = node.lhs, node.rhs
    if node.op == "ge" and emitter.module.target_info.has_costly_masks:
        return _lanes_from(emitter, node)
    if node.op != "lt" or not isinstance(ramp, Ramp) or not isinstance(limit, Broadcast):
        return None
    # With a wrapping ramp, lanes after the wrap would be below the limit although those before it are not.
    if integer_value(ramp.stride) != 1 or dtype_of(ramp.base) != "int64":
        return None
    if not is_ascending(emitter, ramp):
        return None
    base, bound = emitter.expr(ramp.base), emitter.expr(limit.value)
    if ramp.lanes.scalable and emitter.module.target_info.has_lane_masks:
        if not is_nonnegative(emitter, ramp.base):
            base, bound = index_constant(0), _rest(emitter, base, bound)
        return active_lane_mask(emitter, base, bound, dtype_of(node))
    left, right, most = literal_value(base), literal_value(bound), _max_lanes(ramp)
    # All lanes or none: the caller then emits a plain access or nothing.
    if left is not None and right is not None and not left < right < left + most:
        return ON if right > left else OFF
    if left is None and right is None and _fits_32_bits(emitter, ramp, limit.value):
        return _indices_below(emitter, base, bound, ramp.lanes)
    return _first_lanes(emitter, _lanes_left(emitter, base, bound, most), ramp.lanes)


def _lanes_from(emitter: FunctionEmitter, node: Compare) -> Value | None:
    """Return the mask of `ge(Ramp(base, 1, L), Broadcast(limit, L))`, whose first lanes are off; None for
    other comparisons. A comparison of 64-bit indices is a mask of two vectors, which LLVM narrows where it is
    used, in each iteration of a loop."""
    below = lane_mask(emitter, replace(node, op="lt"))
    if below is None or below in (ON, OFF):
        return {ON: OFF, OFF: ON}.get(below) if below is not None else None
    inverse = emitter.builder.value(f"xor {below.typed}, splat (i1 true)")
    return Value(inverse, below.dtype)


def _fits_32_bits(emitter: FunctionEmitter, ramp: Ramp, limit: Expr) -> bool:
    """Return whether all indices of a ramp, and a limit that is not negative, are unsigned integers of 32
    bits. Others have to be cut off in each iteration of a loop, these limits once before it."""
    overflow = emitter.info.overflow
    if overflow is None or ramp.lanes.scalable or not overflow.is_nonnegative(ramp.base):
        return False
    return max(overflow.bound(ramp.base) + ramp.lanes.count, overflow.bound(limit)) < 1 << 32


def _indices_below(emitter: FunctionEmitter, base: Value, bound: Value, lanes: Lanes) -> Value:
    """Return the mask of the lanes with an index below the bound, compared as unsigned integers."""
    dtype_name = DType("int32", lanes.count).text
    emitter.module.require_dtype(dtype_name)
    limit = Value(emitter.call("i64", "llvm.smax.i64", f"{bound.typed}, i64 0"), bound.dtype)
    first, limits = (
        broadcast(emitter, _low_half(emitter, value), dtype_name) for value in (base, limit)
    )
    steps = lane_numbers(emitter, dtype_name)
    indices = Value(emitter.builder.value(f"add {first.typed}, {steps.text}"), dtype_name)
    return icmp(emitter, "ult", indices, limits.text)


def _low_half(emitter: FunctionEmitter, value: Value) -> Value:
    return Value(emitter.builder.value(f"trunc {value.typed} to i32"), "int32")


def is_ascending(emitter: FunctionEmitter, ramp: Ramp) -> bool:
    """Return whether no lane of a ramp with stride 1 wraps."""
    if emitter.info.overflow is None:
        return False
    return emitter.info.overflow.bound(ramp.base) + _max_lanes(ramp) <= MAX_INT64


def _max_lanes(ramp: Ramp) -> int:
    return ramp.lanes.count * (MAX_VSCALE if ramp.lanes.scalable else 1)


def is_nonnegative(emitter: FunctionEmitter, base: Expr) -> bool:
    """Return whether an index is known not to be negative."""
    return emitter.info.overflow is not None and emitter.info.overflow.is_nonnegative(base)


def active_lane_mask(emitter: FunctionEmitter, base: Value, bound: Value, dtype: str) -> Value:
    """Return the mask of the lanes of a scalable vector below the bound. The base is not negative."""
    # LLVM compares unsigned numbers, of which a negative bound would be a large one.
    limit = Value(emitter.call("i64", "llvm.smax.i64", f"{bound.typed}, i64 0"), bound.dtype)
    return Value(emitter.builder.value(active_lanes(emitter, base, limit, dtype)), dtype)


def active_lanes(emitter: FunctionEmitter, base: Value, bound: Value, dtype: str) -> str:
    """Return the text of the instruction for the mask of the lanes below a bound that is not negative either.
    It is one instruction of Arm SVE."""
    emitter.module.require_dtype(dtype)
    mask, arguments = value_type(dtype), f"{base.typed}, {bound.typed}"
    name = f"llvm.get.active.lane.mask.{intrinsic_suffix(mask)}.i64"
    emitter.module.declare(mask, name, arguments)
    return f"call {mask} @{name}({arguments})"


def _rest(emitter: FunctionEmitter, base: Value, bound: Value) -> Value:
    """Return the number of lanes below the bound, or 0 if there is none."""
    rest = emitter.builder.value(f"sub {bound.typed}, {base.text}")
    is_inside = emitter.builder.value(f"icmp slt {base.typed}, {bound.text}")
    return Value(emitter.builder.value(f"select i1 {is_inside}, i64 {rest}, i64 0"), "int64")


def _lanes_left(emitter: FunctionEmitter, base: Value, bound: Value, most: int) -> Value:
    """Return the number of lanes below the bound, between 0 and the most that a vector has."""
    left, right = literal_value(base), literal_value(bound)
    if left is not None and right is not None:
        return index_constant(right - left)
    # If base < bound, their difference fits an unsigned integer even if the subtraction overflows.
    rest = emitter.builder.value(f"sub {bound.typed}, {base.text}")
    some = emitter.call("i64", "llvm.umin.i64", f"i64 {rest}, i64 {most}")
    is_inside = emitter.builder.value(f"icmp slt {base.typed}, {bound.text}")
    return Value(emitter.builder.value(f"select i1 {is_inside}, i64 {some}, i64 0"), "int64")


def _first_lanes(emitter: FunctionEmitter, left: Value, lanes: Lanes) -> Value:
    dtype_name = DType("int32", lanes.count, lanes.scalable).text
    emitter.module.require_dtype(dtype_name)
    number = literal_value(left)
    narrow = Value(str(number), "int32") if number is not None else _low_half(emitter, left)
    limits, steps = broadcast(emitter, narrow, dtype_name), lane_numbers(emitter, dtype_name)
    return icmp(emitter, "ult", steps, limits.text)
