"""Rounds floats to the fractions that tensor cores multiply."""

from __future__ import annotations

from gossamer_ir.core.dtypes import SCALARS, DType
from gossamer_ir.core.math_functions import TF32_FRACTION_BITS
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import select_value
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import integer_text, mask_dtype, value_type


def round_to_tf32(emitter: FunctionEmitter, value: Value) -> Value:
    """Return a float32 or float64 whose fraction is rounded to 10 bits, ties away from zero.

    The carry out of the fraction goes to the exponent, so that numbers become infinite where they overflow.
    A NaN stays as it is: its sign could change otherwise.
    """
    dtype, new = DType.parse(value.dtype), emitter.builder.value
    dropped = SCALARS[dtype.scalar].significant_bits - 1 - TF32_FRACTION_BITS
    integer = dtype.with_scalar(f"uint{dtype.bits}").text
    type_, mask = value_type(integer), (1 << dtype.bits) - (1 << dropped)
    bits = new(f"bitcast {value.typed} to {type_}")
    up = new(f"add {type_} {bits}, {integer_text(1 << dropped - 1, integer)}")
    kept = new(f"and {type_} {up}, {integer_text(mask, integer)}")
    rounded = Value(new(f"bitcast {type_} {kept} to {value.type}"), value.dtype)
    is_nan = Value(new(f"fcmp uno {value.typed}, {value.text}"), mask_dtype(value.dtype))
    return select_value(emitter, is_nan, value, rounded)
