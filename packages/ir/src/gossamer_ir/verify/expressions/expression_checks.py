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
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.expressions.check_expr import check_condition_dtype, check_expr
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
from gossamer_support.message_texts import amount

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


def check_const(context: VerifyContext, node: Const, place: NodePlace) -> str:
    """Check that a constant has a scalar dtype and canonical text."""
    if not is_constant_expr(node.dtype, node.text):
        context.report(
            "verify.const.text",
            f"'{node.text}' is not the canonical text of a constant of dtype {node.dtype}.",
            place,
            hint="Make constants with gossamer_ir.core.constants.constant.",
        )
    return node.dtype


def check_var(context: VerifyContext, node: Var, place: NodePlace) -> str | None:
    """Check that a variable is defined before its use, with the same dtype."""
    dtype = context.vars.get(node.name)
    if dtype is None:
        _report_unknown(context, node, place)
    elif dtype != node.dtype:
        context.report(
            "verify.var.dtype",
            f"The variable '{node.name}' has the dtype {dtype}, not {node.dtype}.",
            place,
        )
    # Last: a variable that is hidden is defined, so the errors above come first if they apply.
    elif node.name in context.hidden:
        context.report(
            "verify.init.reduction",
            f"An init uses the reduction variable '{node.name}'.",
            place,
            hint="An init runs once per element, before the reduction.",
        )
    return dtype


def _report_unknown(context: VerifyContext, node: Var, place: NodePlace) -> None:
    if node.name in context.handles or node.name in context.buffers:
        context.report("verify.var.handle", f"'{node.name}' is a pointer, not a value.", place)
    else:
        context.report(
            "verify.var.undefined",
            f"The variable '{node.name}' is not defined here.",
            place,
            hint=f"Defined are: {', '.join(sorted(context.vars)) or 'none'}.",
        )


def check_unary(context: VerifyContext, node: Unary, place: NodePlace) -> str | None:
    """Check that a unary operator is defined for its operand."""
    dtype = check_expr(context, node.operand, place.down("operand"))
    _check_operator(context, node.op, _UNARY, dtype, place)
    return dtype


def check_binary(context: VerifyContext, node: Binary, place: NodePlace) -> str | None:
    """Check that both operands have one dtype, for which the operator is defined."""
    dtype = _check_operands(context, node.lhs, node.rhs, place)
    _check_operator(context, node.op, _BINARY, dtype, place)
    return dtype


def check_compare(context: VerifyContext, node: Compare, place: NodePlace) -> str | None:
    """Check that both operands have one dtype; the result is bool."""
    dtype = _check_operands(context, node.lhs, node.rhs, place)
    _check_operator(context, node.op, _COMPARE, dtype, place)
    return None if dtype is None else with_lanes_of("bool", dtype)


def _check_operands(context: VerifyContext, lhs: Expr, rhs: Expr, place: NodePlace) -> str | None:
    left = check_expr(context, lhs, place.down("lhs"))
    right = check_expr(context, rhs, place.down("rhs"))
    return _check_same(context, left, right, place)


def _check_same(
    context: VerifyContext, left: str | None, right: str | None, place: NodePlace
) -> str | None:
    if left is None or right is None:
        # One unknown dtype was reported where it arose.
        return left or right
    if left != right:
        context.report(
            "verify.dtype.operands",
            f"The operands have the dtypes {left} and {right}; expected one dtype.",
            place,
            hint="Convert one of them with Cast.",
        )
    return left


def _check_operator(
    context: VerifyContext,
    op: str,
    table: Mapping[str, DTypeTest],
    dtype: str | None,
    place: NodePlace,
) -> None:
    test = table.get(op)
    if test is None:
        context.report(
            "verify.operator.unknown",
            f"'{op}' is not an operator; expected one of {', '.join(table)}.",
            place.down("op"),
        )
    elif dtype is not None and not test(dtype):
        context.report("verify.dtype.operator", f"'{op}' is not defined for {dtype}.", place)


def check_cast(context: VerifyContext, node: Cast, place: NodePlace) -> str | None:
    """Check that a cast keeps the number of lanes."""
    dtype = check_expr(context, node.value, place.down("value"))
    if not _is_known_target(context, node, place):
        return None
    if dtype is not None and with_lanes_of(dtype, node.dtype) != dtype:
        context.report(
            "verify.cast.lanes",
            f"A cast of {dtype} to {node.dtype} changes the number of lanes.",
            place,
        )
    return node.dtype


def check_reinterpret(context: VerifyContext, node: Reinterpret, place: NodePlace) -> str | None:
    """Check that source and target have the same number of bits and lanes; a pointer becomes int64."""
    # Elsewhere a pointer is not a value, so this operand is not checked as one.
    if _is_address(context, node):
        return node.dtype
    dtype = check_expr(context, node.value, place.down("value"))
    if not _is_known_target(context, node, place):
        return None
    if dtype is not None and not _has_bits_of(dtype, node.dtype):
        context.report(
            "verify.reinterpret.bits",
            f"A value of {dtype} cannot be reinterpreted as {node.dtype}.",
            place,
            hint="Both must be numbers with the same number of bits and lanes.",
        )
    return node.dtype


def _is_known_target(context: VerifyContext, node: Cast | Reinterpret, place: NodePlace) -> bool:
    """Return whether the target of a conversion is a dtype, after reporting one that is not."""
    is_known = parse_dtype(node.dtype) is not None
    if not is_known:
        context.report("verify.dtype.unknown", f"'{node.dtype}' is not a dtype of values.", place)
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


def check_select(context: VerifyContext, node: Select, place: NodePlace) -> str | None:
    """Check that both values have one dtype, and that the condition is a scalar or has their lanes."""
    condition = check_expr(context, node.condition, place.down("condition"))
    dtype = _check_sides(context, node, place)
    if condition is not None and dtype is not None:
        lanes = dtype if is_vector(condition) else condition
        check_condition_dtype(
            context, condition, with_lanes_of("bool", lanes), place.down("condition")
        )
    return dtype


def check_if_then_else(context: VerifyContext, node: IfThenElse, place: NodePlace) -> str | None:
    """Check that the condition is a scalar and that both values have one dtype."""
    condition = check_expr(context, node.condition, place.down("condition"))
    check_condition_dtype(context, condition, "bool", place.down("condition"))
    return _check_sides(context, node, place)


def _check_sides(context: VerifyContext, node: Select | IfThenElse, place: NodePlace) -> str | None:
    left = check_expr(context, node.if_true, place.down("if_true"))
    right = check_expr(context, node.if_false, place.down("if_false"))
    return _check_same(context, left, right, place)


def check_call(context: VerifyContext, node: Call, place: NodePlace) -> str | None:
    """Check that a math function exists, and that its arguments and result have one dtype."""
    dtypes = [
        check_expr(context, arg, place.down("args", number)) for number, arg in enumerate(node.args)
    ]
    function = FUNCTIONS.get(node.function)
    if function is None:
        context.report(
            "verify.call.unknown",
            f"'{node.function}' is not a function; expected one of {', '.join(FUNCTIONS)}.",
            place,
        )
    elif len(dtypes) != function.arity:
        context.report(
            "verify.call.arity",
            f"'{node.function}' takes {amount(function.arity, 'argument')}, not {len(dtypes)}.",
            place,
        )
    elif any(dtype not in (None, node.dtype) for dtype in dtypes) or not (
        OPERAND_TESTS[function.operands](node.dtype)
    ):
        context.report(
            "verify.call.dtype",
            f"'{node.function}' is not defined from {', '.join(map(str, dtypes))} to {node.dtype}.",
            place,
        )
    return node.dtype
