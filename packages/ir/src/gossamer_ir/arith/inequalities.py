"""Comparisons of integers as inequalities, and their opposites."""

from __future__ import annotations

from gossamer_ir.arith.affine import Affine, affine_of, combine, scale
from gossamer_ir.arith.simplify import FALSE, TRUE
from gossamer_ir.core import build
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    Binary,
    Cast,
    Compare,
    CompareOp,
    Expr,
    IfThenElse,
    Unary,
)

_OPPOSITE: dict[CompareOp, CompareOp] = {
    "eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le",
}  # fmt: skip


def as_nonnegative(op: CompareOp, lhs: Expr, rhs: Expr) -> Expr:
    """What is >= 0 exactly where `lt`, `le`, `gt` or `ge` holds between two int64 values."""
    if op in ("gt", "ge"):
        lhs, rhs = rhs, lhs
    apart = Binary("sub", rhs, lhs)
    return apart if op in ("le", "ge") else Binary("sub", apart, build.ONE)


def slack_of(condition: Expr) -> Affine | None:
    """What is >= 0 exactly where a condition holds that bounds int64 values; None of any other. Bounds that
    are found by moving its terms from one side to the other are those of unbounded integers: neither the
    condition nor they may wrap.

    >>> from gossamer_ir.arith.affine import expr_of
    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.script import print_expr
    >>> print_expr(expr_of(slack_of(Compare("lt", index_var("i"), index_var("n")))))
    'n - i - 1'
    """
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le", "gt", "ge"):
        return None
    if build.dtype_of(condition.lhs) != "int64":
        return None
    sides = [affine_of(condition.lhs), affine_of(condition.rhs)]
    lesser, greater = reversed(sides) if condition.op in ("gt", "ge") else sides
    is_strict = condition.op in ("lt", "gt")
    return combine(scale(lesser, -1), Affine(greater.terms, greater.constant - is_strict), 1)


def widened(condition: Compare) -> tuple[Expr, Expr] | None:
    """Both sides as int64; None of what is no comparison of integers that int64 holds."""
    lhs, rhs = condition.lhs, condition.rhs
    if build.dtype_of(lhs) == "int64":
        return lhs, rhs
    if not _is_narrow(build.dtype_of(lhs)):
        return None
    return _as_int64(lhs), _as_int64(rhs)


def _is_narrow(dtype: str) -> bool:
    kind = DType.parse(dtype)
    return kind.is_integer and not kind.is_vector and kind.bits < 64


def _as_int64(expr: Expr) -> Expr:
    value = build.integer_value(expr)
    return Cast("int64", expr) if value is None else build.index(value)


def connected(condition: Expr) -> Expr:
    """An `if_then_else` that chooses between a condition and a constant, as `and` or `or`."""
    match condition:
        case IfThenElse(if_false=chosen) if chosen == FALSE:
            return Binary("and", condition.condition, condition.if_true)
        case IfThenElse(if_true=chosen) if chosen == TRUE:
            return Binary("or", condition.condition, condition.if_false)
    return condition


def negated(condition: Expr) -> Expr | None:
    """The opposite of a condition that is made of comparisons of integers; None of any other.

    >>> from gossamer_ir.core.build import index_var
    >>> negated(Compare("lt", index_var("i"), index_var("n"))).op
    'ge'
    """
    match connected(condition):
        case Compare() as found if widened(found) is not None:
            return Compare(_OPPOSITE[found.op], found.lhs, found.rhs)
        case Unary(op="not") as found:
            return found.operand
        case Binary(op="and" | "or") as found:
            lhs, rhs = negated(found.lhs), negated(found.rhs)
            if lhs is not None and rhs is not None:
                return Binary("and" if found.op == "or" else "or", lhs, rhs)
    return None


__all__ = ["as_nonnegative", "connected", "negated", "slack_of", "widened"]
