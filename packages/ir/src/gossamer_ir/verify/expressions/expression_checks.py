"""Checks of scalar expressions. Each returns the dtype of the expression, None if undetermined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, get_args

from gossamer_ir.core.build import is_handle
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.core.operations import BINARY_KINDS, UNARY_OPERANDS, OperandKind
from gossamer_ir.nodes import (
    Binary,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    IfThenElse,
    Reinterpret,
    Select,
    Unary,
    Var,
)
from gossamer_ir.support.message_texts import amount
from gossamer_ir.verify.context import At, VerifyContext
from gossamer_ir.verify.expressions.check_expr import check_expr, require_condition
from gossamer_ir.verify.expressions.dtype_queries import (
    is_bool,
    is_constant_expr,
    is_float,
    is_integer,
    is_number,
    is_vector,
    parse_dtype,
    with_lanes_of,
)

DTypeTest: TypeAlias = Callable[[str], bool]


def _is_any(_: str) -> bool:
    return True


def _is_bits(dtype: str) -> bool:
    return is_integer(dtype) or is_bool(dtype)


OPERAND_TESTS: dict[OperandKind, DTypeTest] = {
    "any": _is_any,
    "numbers": is_number,
    "floats": is_float,
    "integers": is_integer,
    "bools": is_bool,
    "bits": _is_bits,
}
"""The test of a dtype for each kind of operands."""
_UNARY: dict[str, DTypeTest] = {op: OPERAND_TESTS[kind] for op, kind in UNARY_OPERANDS.items()}
_BINARY: dict[str, DTypeTest] = {
    op: OPERAND_TESTS[kind.operands] for op, kind in BINARY_KINDS.items()
}
_COMPARE: dict[str, DTypeTest] = dict.fromkeys(get_args(CompareOp), _is_any)


def check_const(context: VerifyContext, node: Const, at: At) -> str:
    """Check that a constant has a scalar dtype and canonical text."""
    if not is_constant_expr(node.dtype, node.text):
        context.report(
            "verify.const.text",
            f"'{node.text}' is not the canonical text of a constant of dtype {node.dtype}.",
            at,
            hint="Make constants with gossamer_ir.core.constants.constant.",
        )
    return node.dtype


def check_var(context: VerifyContext, node: Var, at: At) -> str | None:
    """Check that a variable is defined before its use, with the same dtype."""
    dtype = context.vars.get(node.name)
    if dtype is None:
        _report_unknown(context, node, at)
    elif dtype != node.dtype:
        context.report(
            "verify.var.dtype",
            f"The variable '{node.name}' has the dtype {dtype}, not {node.dtype}.",
            at,
        )
    # Last: a variable that is hidden is defined, so the errors above come first if they apply.
    elif node.name in context.hidden:
        context.report(
            "verify.init.reduction",
            f"An init uses the reduction variable '{node.name}'.",
            at,
            hint="An init runs once per element, before the reduction.",
        )
    return dtype


def _report_unknown(context: VerifyContext, node: Var, at: At) -> None:
    if node.name in context.handles or node.name in context.buffers:
        context.report("verify.var.handle", f"'{node.name}' is a pointer, not a value.", at)
    else:
        context.report(
            "verify.var.undefined",
            f"The variable '{node.name}' is not defined here.",
            at,
            hint=f"Defined are: {', '.join(sorted(context.vars)) or 'none'}.",
        )


def check_unary(context: VerifyContext, node: Unary, at: At) -> str | None:
    """Check that a unary operator is defined for its operand."""
    dtype = check_expr(context, node.operand, at.down("operand"))
    _check_operator(context, node.op, _UNARY, dtype, at)
    return dtype


def check_binary(context: VerifyContext, node: Binary, at: At) -> str | None:
    """Check that both operands have one dtype, for which the operator is defined."""
    dtype = _check_operands(context, node.lhs, node.rhs, at)
    _check_operator(context, node.op, _BINARY, dtype, at)
    return dtype


def check_compare(context: VerifyContext, node: Compare, at: At) -> str | None:
    """Check that both operands have one dtype; the result is bool."""
    dtype = _check_operands(context, node.lhs, node.rhs, at)
    _check_operator(context, node.op, _COMPARE, dtype, at)
    return None if dtype is None else with_lanes_of("bool", dtype)


def _check_operands(context: VerifyContext, lhs: Expr, rhs: Expr, at: At) -> str | None:
    left = check_expr(context, lhs, at.down("lhs"))
    right = check_expr(context, rhs, at.down("rhs"))
    return _check_same(context, left, right, at)


def _check_same(context: VerifyContext, left: str | None, right: str | None, at: At) -> str | None:
    if left is None or right is None:
        # One unknown dtype was reported where it arose.
        return left or right
    if left != right:
        context.report(
            "verify.dtype.operands",
            f"The operands have the dtypes {left} and {right}; expected one dtype.",
            at,
            hint="Convert one of them with Cast.",
        )
    return left


def _check_operator(
    context: VerifyContext, op: str, table: Mapping[str, DTypeTest], dtype: str | None, at: At
) -> None:
    test = table.get(op)
    if test is None:
        context.report(
            "verify.operator.unknown",
            f"'{op}' is not an operator; expected one of {', '.join(table)}.",
            at.down("op"),
        )
    elif dtype is not None and not test(dtype):
        context.report("verify.dtype.operator", f"'{op}' is not defined for {dtype}.", at)


def check_cast(context: VerifyContext, node: Cast, at: At) -> str | None:
    """Check that a cast keeps the number of lanes."""
    dtype = check_expr(context, node.value, at.down("value"))
    if not _is_known_target(context, node, at):
        return None
    if dtype is not None and with_lanes_of(dtype, node.dtype) != dtype:
        context.report(
            "verify.cast.lanes",
            f"A cast of {dtype} to {node.dtype} changes the number of lanes.",
            at,
        )
    return node.dtype


def check_reinterpret(context: VerifyContext, node: Reinterpret, at: At) -> str | None:
    """Check that source and target have the same number of bits and lanes; a pointer becomes int64."""
    # Elsewhere a pointer is not a value, so this operand is not checked as one.
    if _is_address(context, node):
        return node.dtype
    dtype = check_expr(context, node.value, at.down("value"))
    if not _is_known_target(context, node, at):
        return None
    if dtype is not None and not _has_bits_of(dtype, node.dtype):
        context.report(
            "verify.reinterpret.bits",
            f"A value of {dtype} cannot be reinterpreted as {node.dtype}.",
            at,
            hint="Both must be numbers with the same number of bits and lanes.",
        )
    return node.dtype


def _is_known_target(context: VerifyContext, node: Cast | Reinterpret, at: At) -> bool:
    """Return whether the target of a conversion is a dtype, after reporting one that is not."""
    is_known = parse_dtype(node.dtype) is not None
    if not is_known:
        context.report("verify.dtype.unknown", f"'{node.dtype}' is not a dtype of values.", at)
    return is_known


def _is_address(context: VerifyContext, node: Reinterpret) -> bool:
    value = node.value
    is_pointer = is_handle(value) and value.name in context.handles
    return is_pointer and node.dtype == "int64"


def _has_bits_of(left: str, right: str) -> bool:
    one, other = parse_dtype(left), parse_dtype(right)
    return (
        one is not None
        and other is not None
        and is_number(left)
        and is_number(right)
        and one.bits == other.bits
        and with_lanes_of(left, right) == left
    )


def check_select(context: VerifyContext, node: Select, at: At) -> str | None:
    """Check that both values have one dtype, and that the condition is a scalar or has their lanes."""
    condition = check_expr(context, node.condition, at.down("condition"))
    dtype = _check_sides(context, node, at)
    if condition is not None and dtype is not None:
        lanes = dtype if is_vector(condition) else condition
        require_condition(context, condition, with_lanes_of("bool", lanes), at.down("condition"))
    return dtype


def check_if_then_else(context: VerifyContext, node: IfThenElse, at: At) -> str | None:
    """Check that the condition is a scalar and that both values have one dtype."""
    condition = check_expr(context, node.condition, at.down("condition"))
    require_condition(context, condition, "bool", at.down("condition"))
    return _check_sides(context, node, at)


def _check_sides(context: VerifyContext, node: Select | IfThenElse, at: At) -> str | None:
    left = check_expr(context, node.if_true, at.down("if_true"))
    right = check_expr(context, node.if_false, at.down("if_false"))
    return _check_same(context, left, right, at)


def check_call(context: VerifyContext, node: Call, at: At) -> str | None:
    """Check that a math function exists, and that its arguments and result have one dtype."""
    dtypes = [
        check_expr(context, arg, at.down("args", number)) for number, arg in enumerate(node.args)
    ]
    function = FUNCTIONS.get(node.function)
    if function is None:
        context.report(
            "verify.call.unknown",
            f"'{node.function}' is not a function; expected one of {', '.join(FUNCTIONS)}.",
            at,
        )
    elif len(dtypes) != function.arity:
        context.report(
            "verify.call.arity",
            f"'{node.function}' takes {amount(function.arity, 'argument')}, not {len(dtypes)}.",
            at,
        )
    elif any(dtype not in (None, node.dtype) for dtype in dtypes) or not (
        OPERAND_TESTS[function.operands](node.dtype)
    ):
        context.report(
            "verify.call.dtype",
            f"'{node.function}' is not defined from {', '.join(map(str, dtypes))} to {node.dtype}.",
            at,
        )
    return node.dtype
