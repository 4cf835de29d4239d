"""Dispatches the check of an expression, and checks the dtypes that statements require."""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.constants import is_canonical
from gossamer_ir.nodes import Const, Expr
from gossamer_ir.verify.context import NodePlace, VerifyContext


def check_expr(context: VerifyContext, expr: Expr, place: NodePlace) -> str | None:
    """Check an expression and return its dtype, or None if the dtype cannot be determined."""
    if context.is_too_deep(place):
        return None
    check = context.stage.exprs.get(type(expr))
    if check is None:
        context.report_node(expr, place)
        return None
    return check(context, expr, place)


def check_size(context: VerifyContext, expr: Expr, place: NodePlace) -> None:
    """Check that a start, extent, length or shape is int64."""
    dtype = check_expr(context, expr, place)
    if dtype is not None and dtype != "int64":
        context.report(
            "verify.size.dtype",
            f"A size has the dtype {dtype}; expected int64.",
            place,
            hint="Widen it with Cast.",
        )


def check_length(context: VerifyContext, expr: Expr, place: NodePlace) -> None:
    """Check that a number of elements is int64 and not a negative constant."""
    check_size(context, expr, place)
    if not isinstance(expr, Const) or not is_canonical(expr):
        return
    value = integer_value(expr)
    if value is not None and value < 0:
        context.report("verify.size.negative", f"A size is {value}; expected 0 or more.", place)


def check_condition(context: VerifyContext, expr: Expr, place: NodePlace) -> None:
    """Check that a condition is a scalar bool."""
    check_condition_dtype(context, check_expr(context, expr, place), "bool", place)


def check_condition_dtype(
    context: VerifyContext, dtype: str | None, expected: str, place: NodePlace
) -> None:
    """Report a condition whose dtype is known and not the expected one."""
    if dtype is not None and dtype != expected:
        context.report(
            "verify.condition.dtype",
            f"A condition has the dtype {dtype}; expected {expected}.",
            place,
        )
