"""Dtype conversions of the parser: literals take the expected dtype, index values widen to int64."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Binary, Broadcast, Cast, Const, Expr, Lanes, Unary, Var
from gossamer_ir.script.parser.arguments.statics import StaticValue
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.traversal.walk import walk


def literal(
    context: ParserContext, node: ast.expr, value: StaticValue, expected: str | None
) -> Expr:
    """Return a constant of the expected dtype. The default is int64 for integers and bool for bools."""
    if expected is None:
        if isinstance(value, float):
            raise context.error(
                "literal_dtype",
                f"The dtype of the literal {value} cannot be determined here.",
                node,
                hint=f"Write T.float32({value}) or T.float64({value}).",
            )
        expected = "bool" if isinstance(value, bool) else "int64"
    dtype = DType.parse(expected)
    if isinstance(value, bool) != (dtype.kind == "bool"):
        raise context.error("literal", f"{value} is not a value of the dtype {expected}.", node)
    try:
        scalar = constant(value, dtype.scalar)
    except ArgumentError as error:
        raise context.error("literal", error.diagnostics[0].message, node) from None
    if not dtype.is_vector:
        return scalar
    return Broadcast(scalar, Lanes(dtype.lanes, dtype.scalable))


# Other expressions: keep their dtype; only literals and declared values change it.
def with_int64_operands(value: Expr) -> Expr:
    """Return an expression of narrower integers in int64, with each load and variable widened.

    Widening operands rather than results keeps sums and products from wrapping in the narrower type.
    Anything else is returned as it is.
    """
    match value:
        case Binary():
            return Binary(value.op, with_int64_operands(value.lhs), with_int64_operands(value.rhs))
        case Unary():
            return Unary(value.op, with_int64_operands(value.operand))
        case Const() if DType.parse(value.dtype).is_integer:
            return Const("int64", value.text)
    dtype = DType.parse(dtype_of(value))
    if not dtype.is_integer or dtype.scalar == "int64":
        return value
    return Cast(dtype.with_scalar("int64").text, value)


def common_dtype(values: Sequence[Expr]) -> str | None:
    """Return the dtype to which several operands are converted: int64 if one has it, else the first one's."""
    dtypes = [dtype_of(item) for item in values]
    if not dtypes:
        return None
    wide = [dtype for dtype in dtypes if DType.parse(dtype).scalar == "int64"]
    return wide[0] if wide else dtypes[0]


def match_dtype(context: ParserContext, node: ast.expr, value: Expr, dtype: str) -> Expr:
    """Return the expression converted to the dtype, if that is int64; raises `parse.dtype` if it differs."""
    if DType.parse(dtype).scalar == "int64":
        value = context.mark(with_int64_operands(value), node)
    if dtype_of(value) != dtype:
        raise context.error(
            "dtype",
            f"This expression has the dtype {dtype_of(value)}; expected {dtype}.",
            node,
            hint=f'Convert with T.cast(..., "{dtype}").',
        )
    return value


def expr_of_dtype(context: ParserContext, node: ast.expr, value: Expr, dtype: str) -> Expr:
    """Return the expression in the dtype, with index values widened; raises `parse.dtype` if it differs."""
    return value if dtype_of(value) == dtype else match_dtype(context, node, value, dtype)


def convert_for_store(context: ParserContext, value: Expr, dtype: str) -> Expr:
    """Return a value converted as published programs expect of a store; other values are returned as they
    are.

    An integer that is stored to a buffer of floats becomes a float. An expression of sizes that the text
    declares with a narrower dtype, such as `m + 1` of an int32 `m`, takes that dtype for a store, although
    sizes are int64 everywhere else.
    """
    actual, wanted = DType.parse(dtype_of(value)), DType.parse(dtype)
    if not actual.is_integer or actual == wanted:
        return value
    if wanted.is_float:
        return Cast(dtype, value)
    is_of_sizes = actual.scalar == "int64" and any(isinstance(node, Var) for node in walk(value))
    return Cast(dtype, value) if is_of_sizes and _is_declared(context, value, dtype) else value


# Other expressions: keep their dtype; only literals and declared values change it.
def _is_declared(context: ParserContext, value: Expr, dtype: str) -> bool:
    """Return whether all operands of an expression are declared with a dtype in the text, or fit it."""
    match value:
        case Binary():
            return _is_declared(context, value.lhs, dtype) and _is_declared(
                context, value.rhs, dtype
            )
        case Unary():
            return _is_declared(context, value.operand, dtype)
        case Cast():
            return dtype_of(value.value) == dtype
        case Var():
            return context.declared.get(value.name) == dtype
        case Const():
            return _fits(value, dtype)
    return False


def _fits(value: Const, dtype: str) -> bool:
    try:
        constant(int(value.text), dtype)
    except ArgumentError:
        return False
    return True


def load_dtype(dtype_name: str, indices: Sequence[Expr]) -> str:
    """Return the dtype of a load: that of the buffer, with the lanes of a vector index."""
    for index in indices:
        dtype = DType.parse(dtype_of(index))
        if dtype.is_vector:
            return DType(DType.parse(dtype_name).scalar, dtype.lanes, dtype.scalable).text
    return dtype_name
