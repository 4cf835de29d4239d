"""Comparisons of integers as affine inequalities, and their negation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gossamer_ir.arith.affine import Affine, affine_of, scale
from gossamer_ir.core.build import ONE, index, integer_value
from gossamer_ir.core.conditions import with_operators
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Cast, Compare, CompareOp, Expr, Unary

_OPPOSITE: dict[CompareOp, CompareOp] = {
    "eq": "ne",
    "ne": "eq",
    "lt": "ge",
    "ge": "lt",
    "le": "gt",
    "gt": "le",
}


def as_nonnegative(op: CompareOp, lhs: Expr, rhs: Expr) -> Expr:
    """Return an expression that is >= 0 if and only if `lt`, `le`, `gt` or `ge` holds between two int64
    values."""
    if op in ("gt", "ge"):
        lhs, rhs = rhs, lhs
    apart = Binary("sub", rhs, lhs)
    return apart if op in ("le", "ge") else Binary("sub", apart, ONE)


def slack_of(condition: Expr) -> Affine | None:
    """Return a form that is >= 0 if and only if an inequality of int64 values holds; None for other
    conditions.

    Moving terms from one side to the other is valid for unbounded integers only: neither side of the
    condition may wrap, nor may a bound that is derived from the form.

    >>> from gossamer_ir.arith.affine import expr_of
    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.script import print_expr
    >>> print_expr(expr_of(slack_of(Compare("lt", index_var("i"), index_var("n")))))
    'n - i - 1'
    """
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le", "gt", "ge"):
        return None
    # Narrower types wrap earlier than the forms, which callers check as int64.
    if dtype_of(condition.lhs) != "int64":
        return None
    sides = [affine_of(condition.lhs), affine_of(condition.rhs)]
    lesser, greater = reversed(sides) if condition.op in ("gt", "ge") else sides
    is_strict = condition.op in ("lt", "gt")
    return scale(lesser, -1) + Affine(greater.terms, greater.constant - is_strict)


def widened_sides(condition: Compare) -> tuple[Expr, Expr] | None:
    """Return both sides as int64; None if they are not scalar integers that int64 can represent."""
    lhs, rhs = condition.lhs, condition.rhs
    if dtype_of(lhs) == "int64":
        return lhs, rhs
    # uint64 cannot be widened: its upper half would be negative.
    if not _is_narrow(dtype_of(lhs)):
        return None
    return _as_int64(lhs), _as_int64(rhs)


def _is_narrow(dtype_name: str) -> bool:
    dtype = DType.parse(dtype_name)
    return dtype.is_integer and not dtype.is_vector and dtype.bits < 64


def _as_int64(expr: Expr) -> Expr:
    value = integer_value(expr)
    return Cast("int64", expr) if value is None else index(value)


def negate_condition(condition: Expr) -> Expr | None:
    """Return the negation of a condition that is made of comparisons of integers; None for any other.

    Comparisons of floats have no negation: both `a < b` and `a >= b` are false for NaN.

    >>> from gossamer_ir.core.build import index_var
    >>> negate_condition(Compare("lt", index_var("i"), index_var("n"))).op
    'ge'
    """
    match with_operators(condition):
        case Compare() as comparison if widened_sides(comparison) is not None:
            return Compare(_OPPOSITE[comparison.op], comparison.lhs, comparison.rhs)
        case Unary(op="not", operand=operand):
            return operand
        case Binary(op="and" | "or") as connective:
            lhs, rhs = negate_condition(connective.lhs), negate_condition(connective.rhs)
            # Both sides: the negation of an `and` is an `or`, and half of it would be stronger.
            if lhs is not None and rhs is not None:
                return Binary("and" if connective.op == "or" else "or", lhs, rhs)
    return None


def implied_forms(condition: Expr, holds: Callable[[Expr], bool]) -> Iterator[Affine]:
    """Yield forms that are >= 0 if a condition is true, none for parts that do not compare integers.

    `holds(expr)` is true if expr >= 0 is proved; `lhs != rhs` implies a strict inequality only if one
    side is known to be at most the other. It is called lazily, so that a caller may assume each form
    before it takes the next one.

    >>> from gossamer_ir.core.build import index_var
    >>> i, n = index_var("i"), index_var("n")
    >>> apart = Compare("ne", i, n)
    >>> list(implied_forms(apart, lambda expr: False))
    []
    >>> (form,) = implied_forms(apart, lambda expr: expr == Binary("sub", n, i))
    >>> form == affine_of(as_nonnegative("lt", i, n))
    True
    """
    match with_operators(condition):
        case Binary(op="and", lhs=lhs, rhs=rhs):
            yield from implied_forms(lhs, holds)
            yield from implied_forms(rhs, holds)
        # De Morgan. `not (a and b)` is a disjunction, which implies nothing alone.
        case Unary(op="not", operand=Binary(op="or") as either):
            yield from implied_forms(Unary("not", either.lhs), holds)
            yield from implied_forms(Unary("not", either.rhs), holds)
        case Unary(op="not", operand=operand):
            opposite = negate_condition(operand)
            if opposite is not None:
                yield from implied_forms(opposite, holds)
        case Compare() as comparison:
            sides = widened_sides(comparison)
            if sides is not None:
                yield from _forms_of_comparison(comparison.op, *sides, holds)


def _forms_of_comparison(
    op: CompareOp, lhs: Expr, rhs: Expr, holds: Callable[[Expr], bool]
) -> Iterator[Affine]:
    match op:
        case "eq":
            yield affine_of(Binary("sub", lhs, rhs))
            yield affine_of(Binary("sub", rhs, lhs))
        case "ne":
            for low, high in ((lhs, rhs), (rhs, lhs)):
                apart = Binary("sub", high, low)
                # i != n alone is a disjunction, i < n or i > n, which one affine form cannot express.
                if holds(apart):
                    yield affine_of(Binary("sub", apart, ONE))
                    return
        case _:
            yield affine_of(as_nonnegative(op, lhs, rhs))
