"""Floor division of integers, defined for every operand as in NumPy: division by 0 results in 0, and the most
negative integer divided by -1 is itself."""

from __future__ import annotations

from gossamer_ir.arith.affine import affine_of, factor_affine
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Expr, VScale
from gossamer_llvm.emitter.folding import literal_value
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.instructions import binary_op, icmp, select_value
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import integer_text
from gossamer_llvm.values.scalars_and_vectors import vscale


def floordiv(emitter: FunctionEmitter, lhs: Value, rhs: Value) -> Value:
    """Return lhs // rhs of integers."""
    # A shift rounds down, as floor division does,
    # and masks give the remainder with the sign of the divisor.
    divisor = literal_value(rhs)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        shift = "lshr" if _is_unsigned(lhs) else "ashr"
        return binary_op(emitter, shift, lhs, str(divisor.bit_length() - 1))
    if _is_unsigned(lhs):
        quotient = binary_op(emitter, "udiv", lhs, _safe_divisor(emitter, lhs, rhs))
    else:
        quotient = _signed_quotient(emitter, lhs, _safe_divisor(emitter, lhs, rhs))
    return _zero_where_divided_by_zero(emitter, quotient, rhs)


def floordiv_by_vscale(emitter: FunctionEmitter, lhs: Value, factor: int) -> Value:
    """Return lhs // (factor * vscale) of int64, where the factor is a power of two, and so is vscale on every
    machine: the division is a shift, by a number that does not change."""
    log = emitter.call("i64", "llvm.cttz.i64", f"{vscale(emitter).typed}, i1 true")
    bits = emitter.builder.value(f"add i64 {log}, {factor.bit_length() - 1}")
    return binary_op(emitter, "ashr", lhs, bits)


def vscale_multiple(divisor: Expr) -> int | None:
    """Return the factor of a power of two times vscale; None for any other expression.

    >>> from gossamer_ir.core.build import index, mul
    >>> vscale_multiple(mul(index(4), VScale())), vscale_multiple(mul(index(3), VScale()))
    (4, None)
    """
    factor = factor_of_vscale(divisor)
    return factor if factor is not None and factor & (factor - 1) == 0 else None


def factor_of_vscale(divisor: Expr) -> int | None:
    """Return the positive factor of an int64 that is a multiple of vscale; None for any other expression.

    >>> from gossamer_ir.core.build import index, mul
    >>> factor_of_vscale(mul(index(3), VScale())), factor_of_vscale(index(3))
    (3, None)
    """
    if dtype_of(divisor) != "int64":
        return None
    factor, factors = factor_affine(affine_of(divisor))
    return factor if factor > 0 and factors == (VScale(),) else None


def floormod(emitter: FunctionEmitter, lhs: Value, rhs: Value) -> Value:
    """Return lhs - (lhs // rhs) * rhs of integers, with the sign of rhs."""
    divisor = literal_value(rhs)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return binary_op(emitter, "and", lhs, str(divisor - 1))
    # The division is made in any case, also in lanes whose result is not used, so it must not trap.
    safe = _safe_divisor(emitter, lhs, rhs)
    if _is_unsigned(lhs):
        return _zero_where_divided_by_zero(emitter, binary_op(emitter, "urem", lhs, safe), rhs)
    remainder = binary_op(emitter, "srem", lhs, safe)
    moved = binary_op(emitter, "add", remainder, safe)
    chosen = select_value(emitter, _rounds_down(emitter, remainder, safe), moved, remainder)
    return _zero_where_divided_by_zero(emitter, chosen, rhs)


def _signed_quotient(emitter: FunctionEmitter, lhs: Value, divisor: str) -> Value:
    quotient = binary_op(emitter, "sdiv", lhs, divisor)
    remainder = binary_op(emitter, "srem", lhs, divisor)
    # sdiv rounds toward 0; one less where the remainder has the other sign.
    lower = binary_op(emitter, "add", quotient, integer_text(-1, lhs.dtype))
    return select_value(emitter, _rounds_down(emitter, remainder, divisor), lower, quotient)


def _rounds_down(emitter: FunctionEmitter, remainder: Value, divisor: str) -> Value:
    """Return whether the remainder is not 0 and its sign differs from that of the divisor."""
    signs = binary_op(emitter, "xor", remainder, divisor)
    zero = integer_text(0, signs.dtype)
    differ = icmp(emitter, "slt", signs, zero)
    some = icmp(emitter, "ne", remainder, zero)
    return binary_op(emitter, "and", differ, some.text)


def _safe_divisor(emitter: FunctionEmitter, lhs: Value, rhs: Value) -> str:
    """Return the divisor, replaced by 1 if the machine division is undefined for it."""
    divisor = literal_value(rhs)
    # -1 as well: the least integer divided by -1 traps on x86-64.
    if divisor is not None and divisor not in (0, -1):
        return rhs.text
    bad = icmp(emitter, "eq", rhs, integer_text(0, rhs.dtype))
    if not _is_unsigned(lhs):
        bad = binary_op(emitter, "or", bad, _overflows(emitter, lhs, rhs).text)
    one = Value(integer_text(1, rhs.dtype), rhs.dtype)
    return select_value(emitter, bad, one, rhs).text


def _overflows(emitter: FunctionEmitter, lhs: Value, rhs: Value) -> Value:
    lowest = integer_text(1 << (DType.parse(lhs.dtype).bits - 1), lhs.dtype)
    is_lowest = icmp(emitter, "eq", lhs, lowest)
    is_minus_one = icmp(emitter, "eq", rhs, integer_text(-1, rhs.dtype))
    return binary_op(emitter, "and", is_lowest, is_minus_one.text)


def _zero_where_divided_by_zero(emitter: FunctionEmitter, result: Value, rhs: Value) -> Value:
    if literal_value(rhs):
        return result
    zero = Value(integer_text(0, rhs.dtype), rhs.dtype)
    is_zero = icmp(emitter, "eq", rhs, zero.text)
    return select_value(emitter, is_zero, zero, result)


def _is_unsigned(value: Value) -> bool:
    return DType.parse(value.dtype).kind == "uint"
