"""Bounds of non-affine expressions (atoms), derived from their operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from gossamer_ir.arith.affine import Affine, affine_of, scale
from gossamer_ir.core.build import ONE, index, integer_value, mul, sub
from gossamer_ir.core.conditions import TRUE
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.nodes import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Expr,
    IfThenElse,
    Search,
    Select,
    Unary,
)

ConditionalBound: TypeAlias = tuple[Expr, Expr]
"""A condition, and a bound of an atom where the condition holds."""


def cases_of(atom: Expr, *, is_lower: bool) -> tuple[ConditionalBound, ...]:
    """Return cases that together are exhaustive, each with the least (or the greatest) value of an atom in
    it; empty if no such values are known."""
    match atom:
        case Search(kind="exact"):
            # A miss is -1, which is below any position, so the greatest value needs both cases.
            absent = (TRUE, index(-1))
            return (absent,) if is_lower else (absent, (TRUE, sub(atom.end, ONE)))
        case Search():
            begin = (TRUE, atom.begin)
            return (begin,) if is_lower else (begin, (TRUE, atom.end))
        case Binary(op="min" | "max"):
            return _sides(atom) if is_lower == (atom.op == "min") else ()
        # Exact in both cases, so both the least and the greatest value are these.
        case Select() | IfThenElse():
            opposite = Unary("not", atom.condition)
            return (atom.condition, atom.if_true), (opposite, atom.if_false)
    return ()


def _sides(atom: Binary) -> tuple[ConditionalBound, ...]:
    """Return a case for each operand of a minimum or a maximum."""
    first, second = (atom.lhs, atom.rhs) if atom.op == "min" else (atom.rhs, atom.lhs)
    is_ordered = Compare("le", first, second), Compare("ge", first, second)
    return (is_ordered[0], atom.lhs), (is_ordered[1], atom.rhs)


class OperationBounds(msgspec.Struct, frozen=True):
    """The conclusions of the prover from an operation: a function of an atom and of the operation that it is,
    which yields forms that are not negative."""

    forms: Callable[[Expr, Binary], Iterator[Affine]]
    relates_operands: bool = True
    """True if the forms relate the result to the operands. `OverflowAnalysis` then requires that these do
    not overflow."""


def bounds_of_binary(atom: Expr, inner: Binary) -> Iterator[Affine]:
    """Yield forms that are not negative, for an operation of `OPERATION_BOUNDS`."""
    bounds = OPERATION_BOUNDS.get(inner.op)
    return iter(()) if bounds is None else bounds.forms(atom, inner)


def bounds_of_call(atom: Expr, inner: Call) -> Iterator[Affine]:
    """Yield forms that are not negative, for a number of bits."""
    if FUNCTIONS[inner.function].counts_bits:
        yield Affine({atom: 1}, 0)
        yield Affine({atom: -1}, DType.parse(inner.dtype).bits)


def _about_division(atom: Expr, inner: Binary) -> Iterator[Affine]:
    return _about_quotient(atom, inner.lhs, integer_value(inner.rhs))


def _about_right_shift(atom: Expr, inner: Binary) -> Iterator[Affine]:
    bits = integer_value(inner.rhs)
    # A shift by 63 or more is defined (0 or -1), but 1 << 63 is not an int64.
    divisor = 1 << bits if bits is not None and 0 <= bits < 63 else None
    return _about_quotient(atom, inner.lhs, divisor)


def _about_mask(atom: Expr, inner: Binary) -> Iterator[Affine]:
    for mask in map(integer_value, (inner.lhs, inner.rhs)):
        # A negative mask keeps the sign bit, so the result may be any negative number.
        if mask is not None and mask >= 0:
            yield Affine({atom: 1}, 0)
            yield Affine({atom: -1}, mask)


def _about_least_or_greatest(atom: Expr, inner: Binary) -> Iterator[Affine]:
    for side in (inner.lhs, inner.rhs):
        difference = affine_of(Binary("sub", side, atom))
        yield scale(difference, 1 if inner.op == "min" else -1)


def _about_quotient(atom: Expr, dividend: Expr, divisor: int | None) -> Iterator[Affine]:
    """Yield 0 <= dividend - quotient * divisor < divisor; with the signs exchanged for a negative divisor."""
    # Division by 0 gives 0 in this language, for which none of these inequalities holds.
    if not divisor:
        return
    # Floor division: the remainder has the sign of the divisor, so both bounds turn around with it.
    left = Binary("sub", dividend, mul(atom, index(divisor)))
    sign = 1 if divisor > 0 else -1
    yield scale(affine_of(left), sign)
    last = Binary("sub", index(divisor - sign), left)
    yield scale(affine_of(last), sign)


def _about_remainder(atom: Expr, inner: Binary) -> Iterator[Affine]:
    divisor = integer_value(inner.rhs)
    if divisor:
        sign = 1 if divisor > 0 else -1
        yield Affine({atom: sign}, 0)
        yield Affine({atom: -sign}, abs(divisor) - 1)
        yield from remainder_equations(atom, inner)


def remainder_equations(atom: Expr, inner: Binary) -> Iterator[Affine]:
    """Yield remainder = dividend - quotient * divisor, for a divisor that is not zero."""
    quotient = Binary("floordiv", inner.lhs, inner.rhs)
    whole = Binary("add", Binary("mul", quotient, inner.rhs), atom)
    left = affine_of(Binary("sub", inner.lhs, whole))
    yield left
    yield scale(left, -1)


OPERATION_BOUNDS: dict[BinaryOp, OperationBounds] = {
    "floordiv": OperationBounds(_about_division),
    "floormod": OperationBounds(_about_remainder),
    "shr": OperationBounds(_about_right_shift),
    "bitand": OperationBounds(_about_mask, relates_operands=False),
    "min": OperationBounds(_about_least_or_greatest),
    "max": OperationBounds(_about_least_or_greatest),
}
"""The operations that the prover bounds. Any other result, except those of affine forms, may be anything."""


def bounds_of_storage(atom: Expr, dtype_name: str) -> Iterator[Affine]:
    """Yield the limits of a dtype that an atom is widened from."""
    dtype = DType.parse(dtype_name)
    if not dtype.is_float and dtype.bits < 64:
        low, high = dtype.limits
        yield Affine({atom: 1}, -low)
        yield Affine({atom: -1}, high)


def strip_widening(atom: Expr) -> Expr:
    """Return the operand of a cast to int64 that keeps every value; else the atom. The cast of a uint64 may
    change its value, unless that is a number of bits.

    >>> from gossamer_ir.nodes import Var
    >>> [strip_widening(Cast("int64", Var("v", dtype))).dtype for dtype in ("int32", "uint64")]
    ['int32', 'int64']
    """
    if not isinstance(atom, Cast) or atom.dtype != "int64":
        return atom
    dtype = DType.parse(dtype_of(atom.value))
    # A uint64 above 2**63 becomes negative as int64.
    is_same = dtype.kind in ("int", "bool") or (dtype.kind == "uint" and dtype.bits < 64)
    is_same |= isinstance(atom.value, Call) and FUNCTIONS[atom.value.function].counts_bits
    return atom.value if is_same and not dtype.is_vector else atom
