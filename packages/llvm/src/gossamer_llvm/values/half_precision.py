"""Floats that are computed in float32, such as bfloat16: integers in memory and registers.

If the CPU has no instruction for a conversion, LLVM would call a library, so it is integer arithmetic here.
Every result is rounded to nearest, ties to even; a NaN becomes a quiet NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gossamer_ir.core.dtypes import DType
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import (
    integer_text,
    intrinsic_suffix,
    mask_dtype,
    splat,
    value_type,
)

FRACTION_BITS = 10
"""Bits of the fraction of a float16."""
DROPPED_BITS = 23 - FRACTION_BITS
"""Bits of the fraction of a float32 that a float16 does not have."""
EXPONENT_DIFFERENCE = 127 - 15
"""The bias of the exponent of float32 less that of float16."""
FLOAT16_SIGN, FLOAT16_MAGNITUDE = 0x8000, 0x7FFF
FLOAT16_INFINITY, FLOAT16_NAN = 0x7C00, 0x7E00
BFLOAT16_QUIET = 0x40
"""The bit that makes a NaN in bfloat16 quiet."""
FLOAT32_MAGNITUDE, FLOAT32_INFINITY = 0x7FFFFFFF, 0x7F800000
FLOAT32_HALF = 0x3F000000
"""The bits of 0.5 in float32."""
FLOAT16_NORMAL = 0x38800000
"""The bits in float32 of 2**-14, the least normal number of float16."""
RESCALE, ONE_HALF = "0x46F0000000000000", "0x3FE0000000000000"
"""2**EXPONENT_DIFFERENCE and 0.5. LLVM writes constants of float32 as the bits of a float64."""


def is_half(dtype: str) -> bool:
    """Return whether the lanes are floats that are computed in float32.

    >>> is_half("bfloat16"), is_half("float16x8"), is_half("float32")
    (True, True, False)
    """
    return DType.parse(dtype).scalar in HALF_CONVERSIONS


def widen_to_float32(emitter: FunctionEmitter, value: Value) -> Value:
    """Return a float that is computed in float32 as one, which is exact; any other value as it is."""
    dtype = DType.parse(value.dtype)
    if dtype.scalar not in HALF_CONVERSIONS:
        return value
    native = _native_type(emitter, dtype)
    if native is None:
        return HALF_CONVERSIONS[dtype.scalar].widened(emitter, value)
    half = emitter.builder.value(f"bitcast {value.typed} to {native}")
    single = dtype.with_scalar("float32").text
    text = f"fpext {native} {half} to {value_type(single)}"
    return Value(emitter.builder.value(text), single)


def round_to_half(emitter: FunctionEmitter, value: Value, dtype_name: str) -> Value:
    """Return a float32 or float64 rounded once to a float that is computed in float32.

    The fence is needed because LLVM otherwise moves a sign that is taken from a float64 after the conversion,
    and then calls a library to convert the float64, too.
    """
    dtype = DType.parse(dtype_name)
    # float64 to float16 by way of float32 would round twice, and two roundings may differ from one.
    single = value if DType.parse(value.dtype).bits == 32 else _round_to_odd(emitter, value)
    native = _native_type(emitter, dtype)
    if native is not None:
        fence = f"llvm.arithmetic.fence.{intrinsic_suffix(single.type)}"
        kept = Value(emitter.call(single.type, fence, single.typed), single.dtype)
        half = emitter.builder.value(f"fptrunc {kept.typed} to {native}")
        text = f"bitcast {native} {half} to {value_type(dtype_name)}"
        return Value(emitter.builder.value(text), dtype_name)
    narrow = HALF_CONVERSIONS[dtype.scalar].rounded(_Bits(emitter, dtype).bits_of(single), single)
    text = f"trunc {narrow.value.typed} to {value_type(dtype_name)}"
    return Value(emitter.builder.value(text), dtype_name)


class _Bits:
    """32-bit integers under construction."""

    def __init__(self, emitter: FunctionEmitter, dtype: DType, value: Value | None = None) -> None:
        self.emitter = emitter
        self.float_dtype = dtype
        self.dtype = dtype.with_scalar("uint32").text
        self._value = value

    @property
    def value(self) -> Value:
        assert self._value is not None
        return self._value

    def _new(self, text: str) -> _Bits:
        return _Bits(
            self.emitter, self.float_dtype, Value(self.emitter.builder.value(text), self.dtype)
        )

    def bits_of(self, single: Value) -> _Bits:
        """Return the bits of a float32."""
        return self._new(f"bitcast {single.typed} to {value_type(self.dtype)}")

    def zero_extend(self, half: Value) -> _Bits:
        """Return 16 bits, zero-extended."""
        return self._new(f"zext {half.typed} to {value_type(self.dtype)}")

    def op(self, operation: str, other: _Bits | int) -> _Bits:
        operand = integer_text(other, self.dtype) if isinstance(other, int) else other.value.text
        return self._new(f"{operation} {self.value.typed}, {operand}")

    def least(self, limit: int) -> _Bits:
        name, operand = (
            f"llvm.umin.{intrinsic_suffix(self.value.type)}",
            integer_text(limit, self.dtype),
        )
        text = self.emitter.call(
            self.value.type, name, f"{self.value.typed}, {self.value.type} {operand}"
        )
        return _Bits(self.emitter, self.float_dtype, Value(text, self.dtype))

    def select(self, tested: _Bits, test: str, limit: int, if_true: _Bits | int) -> _Bits:
        """Return `if_true` if the comparison `test` of `tested` with `limit` holds, else this value."""
        mask = value_type(mask_dtype(self.float_dtype.text))
        against = integer_text(limit, self.dtype)
        holds = self.emitter.builder.value(f"icmp {test} {tested.value.typed}, {against}")
        one = integer_text(if_true, self.dtype) if isinstance(if_true, int) else if_true.value.text
        return self._new(f"select {mask} {holds}, {self.value.type} {one}, {self.value.typed}")


def _bits(bits: _Bits) -> Value:
    """Return the float32 with these bits."""
    single = bits.float_dtype.with_scalar("float32").text
    text = f"bitcast {bits.value.typed} to {value_type(single)}"
    return Value(bits.emitter.builder.value(text), single)


def _widened_bfloat16(emitter: FunctionEmitter, value: Value) -> Value:
    return _bits(_Bits(emitter, DType.parse(value.dtype)).zero_extend(value).op("shl", 16))


def _widened_float16(emitter: FunctionEmitter, value: Value) -> Value:
    """Return a float16 as float32. The exponent is adjusted by a multiplication with 2^112, which is exact
    for subnormal numbers, too."""
    bits = _Bits(emitter, DType.parse(value.dtype)).zero_extend(value)
    size = bits.op("and", FLOAT16_MAGNITUDE)
    moved = size.op("shl", DROPPED_BITS)
    scale = splat(RESCALE, _bits(moved).dtype)
    product = emitter.builder.value(f"fmul {_bits(moved).typed}, {scale}")
    finite = bits.bits_of(Value(product, bits.float_dtype.with_scalar("float32").text))
    # Infinity and NaN have the largest exponent, which the multiplication would not keep.
    chosen = finite.select(size, "uge", FLOAT16_INFINITY, moved.op("or", FLOAT32_INFINITY))
    return _bits(chosen.op("or", bits.op("and", FLOAT16_SIGN).op("shl", 16)))


def _bfloat16_bits(bits: _Bits, _single: Value) -> _Bits:
    upper = bits.op("lshr", 16)
    rounded = bits.op("add", upper.op("and", 1)).op("add", 0x7FFF).op("lshr", 16)
    # Rounding up the payload of a NaN could make it infinite or zero, so NaNs are truncated and made quiet.
    return rounded.select(
        bits.op("and", FLOAT32_MAGNITUDE), "ugt", FLOAT32_INFINITY, upper.op("or", BFLOAT16_QUIET)
    )


def _float16_bits(bits: _Bits, single: Value) -> _Bits:
    """Return the bits of a float16. Numbers that become subnormal are rounded by adding 0.5, whose last
    fraction bit has the weight of their last bit."""
    emitter = bits.emitter
    size = bits.op("and", FLOAT32_MAGNITUDE)
    even = size.op("lshr", DROPPED_BITS).op("and", 1)
    usual = (
        size.op("add", even)
        .op("add", (1 << DROPPED_BITS - 1) - 1)
        .op("lshr", DROPPED_BITS)
        .op("sub", EXPONENT_DIFFERENCE << FRACTION_BITS)
    )
    half = splat(ONE_HALF, single.dtype)
    total = Value(emitter.builder.value(f"fadd {_bits(size).typed}, {half}"), single.dtype)
    small = bits.bits_of(total).op("sub", FLOAT32_HALF)
    result = usual.least(FLOAT16_INFINITY).select(size, "ult", FLOAT16_NORMAL, small)
    result = result.select(size, "ugt", FLOAT32_INFINITY, FLOAT16_NAN)
    return result.op("or", bits.op("lshr", 16).op("and", FLOAT16_SIGN))


def _round_to_odd(emitter: FunctionEmitter, value: Value) -> Value:
    """Return a float64 rounded to odd as float32: its last bit is set if the result is inexact, so that
    rounding it again has no double rounding error (S. Boldo and G. Melquiond, 2008)."""
    dtype = DType.parse(value.dtype)
    single = dtype.with_scalar("float32").text
    narrow = Value(emitter.builder.value(f"fptrunc {value.typed} to {value_type(single)}"), single)
    back = emitter.builder.value(f"fpext {narrow.typed} to {value.type}")
    name = f"llvm.fabs.{intrinsic_suffix(value.type)}"
    sizes = [emitter.call(value.type, name, f"{value.type} {text}") for text in (back, value.text)]
    mask = value_type(mask_dtype(dtype.text))
    grew = emitter.builder.value(f"fcmp ogt {value.type} {sizes[0]}, {sizes[1]}")
    bits = _Bits(emitter, dtype).bits_of(narrow)
    step = emitter.builder.value(f"zext {mask} {grew} to {bits.value.type}")
    odd = bits.op("sub", _Bits(emitter, dtype, Value(step, bits.dtype))).op("or", 1)
    lost = emitter.builder.value(f"fcmp one {value.type} {back}, {value.text}")
    text = f"select {mask} {lost}, {odd.value.typed}, {bits.value.typed}"
    return _bits(_Bits(emitter, dtype, Value(emitter.builder.value(text), bits.dtype)))


class HalfConversion(msgspec.Struct, frozen=True):
    """The conversions of a float that is computed in float32."""

    widened: Callable[[FunctionEmitter, Value], Value]
    """Returns a value as float32, which is exact."""
    rounded: Callable[[_Bits, Value], _Bits]
    """Returns the bits of a float32, which is passed, too, after rounding. They are then truncated."""
    native: str | None = None
    """The type of LLVM that CPUs with `has_half_conversions` convert, if there is one."""


HALF_CONVERSIONS: dict[str, HalfConversion] = {
    "float16": HalfConversion(_widened_float16, _float16_bits, native="half"),
    "bfloat16": HalfConversion(_widened_bfloat16, _bfloat16_bits),
}
"""The conversions of each dtype that is computed in float32."""


def _native_type(emitter: FunctionEmitter, dtype: DType) -> str | None:
    """Return the type of LLVM in which the target converts a dtype; None if it has no such instruction."""
    native = HALF_CONVERSIONS[dtype.scalar].native
    if native is None or not emitter.module.target_info.has_half_conversions:
        return None
    integer = dtype.with_scalar("int16").text
    return value_type(integer).replace("i16", native)
