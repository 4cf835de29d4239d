"""Dispatches the check of an expression, and checks the dtypes that statements require."""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.constants import is_canonical
from gossamer_ir.nodes import Const, Expr
from gossamer_ir.verify.context import At, VerifyContext


def check_expr(context: VerifyContext, expr: Expr, at: At) -> str | None:
    """Check an expression and return its dtype, or None if the dtype cannot be determined."""
    if context.is_too_deep(at):
        return None
    check = context.stage.exprs.get(type(expr))
    if check is None:
        context.refuse_node(expr, at)
        return None
    return check(context, expr, at)


def check_size(context: VerifyContext, expr: Expr, at: At) -> None:
    """Check that a start, extent, length or shape is int64."""
    dtype = check_expr(context, expr, at)
    if dtype is not None and dtype != "int64":
        context.report(
            "verify.size.dtype",
            f"A size has the dtype {dtype}; expected int64.",
            at,
            hint="Widen it with Cast.",
        )


def check_length(context: VerifyContext, expr: Expr, at: At) -> None:
    """Check that a number of elements is int64 and not a negative constant."""
    check_size(context, expr, at)
    if not isinstance(expr, Const) or not is_canonical(expr):
        return
    value = integer_value(expr)
    if value is not None and value < 0:
        context.report("verify.size.negative", f"A size is {value}; expected 0 or more.", at)


def check_condition(context: VerifyContext, expr: Expr, at: At) -> None:
    """Check that a condition is a scalar bool."""
    require_condition(context, check_expr(context, expr, at), "bool", at)


def require_condition(context: VerifyContext, dtype: str | None, expected: str, at: At) -> None:
    """Report a condition whose dtype is known and not the expected one."""
    if dtype is not None and dtype != expected:
        context.report(
            "verify.condition.dtype", f"A condition has the dtype {dtype}; expected {expected}.", at
        )
