"""Dtype conversions of the parser: literals take the expected dtype, index values widen to int64."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gossamer_ir.core.build import dtype_of
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Binary, Broadcast, Cast, Const, Expr, Lanes, Unary, Var
from gossamer_ir.script.parser.context import Context
from gossamer_ir.script.parser.statics import Value
from gossamer_ir.traversal.walk import walk


def literal(ctx: Context, node: ast.expr, value: Value, expected: str | None) -> Expr:
    """A constant of the expected dtype. The default is int64 for integers and bool for bools."""
    if expected is None:
        if isinstance(value, float):
            raise ctx.error(
                "literal_dtype",
                f"The dtype of the literal {value} cannot be determined here.",
                node,
                hint=f"Write T.float32({value}) or T.float64({value}).",
            )
        expected = "bool" if isinstance(value, bool) else "int64"
    kind = DType.parse(expected)
    if isinstance(value, bool) != (kind.kind == "bool"):
        raise ctx.error("literal", f"{value} is not a value of the dtype {expected}.", node)
    try:
        scalar = constant(value, kind.scalar)
    except ArgumentError as error:
        raise ctx.error("literal", error.diagnostics[0].message, node) from None
    if not kind.is_vector:
        return scalar
    return Broadcast(scalar, Lanes(kind.lanes, kind.scalable))


def widened(found: Expr) -> Expr:
    """An expression of narrower integers in int64, with each load and variable widened.

    Widening operands rather than results keeps sums and products from wrapping in the narrower type.
    Anything else is returned as it is.
    """
    match found:
        case Binary():
            return Binary(found.op, widened(found.lhs), widened(found.rhs))
        case Unary():
            return Unary(found.op, widened(found.operand))
        case Const() if DType.parse(found.dtype).is_integer:
            return Const("int64", found.text)
    kind = DType.parse(dtype_of(found))
    if not kind.is_integer or kind.scalar == "int64":
        return found
    return Cast(kind.with_scalar("int64").text, found)


def common_dtype(found: Sequence[Expr]) -> str | None:
    """The dtype to which several operands are converted: int64 if one has it, else the first one's."""
    dtypes = [dtype_of(item) for item in found]
    if not dtypes:
        return None
    wide = [dtype for dtype in dtypes if DType.parse(dtype).scalar == "int64"]
    return wide[0] if wide else dtypes[0]


def matched(ctx: Context, node: ast.expr, found: Expr, dtype: str) -> Expr:
    """The expression converted to the dtype, if that is int64; raises `parse.dtype` if it differs."""
    if DType.parse(dtype).scalar == "int64":
        found = ctx.mark(widened(found), node)
    if dtype_of(found) != dtype:
        raise ctx.error(
            "dtype",
            f"This expression has the dtype {dtype_of(found)}; expected {dtype}.",
            node,
            hint=f'Convert with T.cast(..., "{dtype}").',
        )
    return found


def require_dtype(ctx: Context, node: ast.expr, found: Expr, dtype: str) -> Expr:
    """The expression in the dtype, with index values widened; raises `parse.dtype` if it differs."""
    return found if dtype_of(found) == dtype else matched(ctx, node, found, dtype)


def stored(ctx: Context, found: Expr, dtype: str) -> Expr:
    """A value converted as published programs expect of a store; other values are returned as they are.

    An integer that is stored to a buffer of floats becomes a float. An expression of sizes that the text
    declares with a narrower dtype, such as `m + 1` of an int32 `m`, takes that dtype for a store, although
    sizes are int64 everywhere else.
    """
    given, wanted = DType.parse(dtype_of(found)), DType.parse(dtype)
    if not given.is_integer or given == wanted:
        return found
    if wanted.is_float:
        return Cast(dtype, found)
    is_of_sizes = given.scalar == "int64" and any(isinstance(node, Var) for node in walk(found))
    return Cast(dtype, found) if is_of_sizes and _is_declared(ctx, found, dtype) else found


def _is_declared(ctx: Context, found: Expr, dtype: str) -> bool:
    """True if all operands of an expression are declared with a dtype in the text, or fit it."""
    match found:
        case Binary():
            return _is_declared(ctx, found.lhs, dtype) and _is_declared(ctx, found.rhs, dtype)
        case Unary():
            return _is_declared(ctx, found.operand, dtype)
        case Cast():
            return dtype_of(found.value) == dtype
        case Var():
            return ctx.declared.get(found.name) == dtype
        case Const():
            return _fits(found, dtype)
    return False


def _fits(found: Const, dtype: str) -> bool:
    try:
        constant(int(found.text), dtype)
    except ArgumentError:
        return False
    return True


def load_dtype(dtype: str, indices: Sequence[Expr]) -> str:
    """The dtype of a load: that of the buffer, with the lanes of a vector index."""
    for index in indices:
        kind = DType.parse(dtype_of(index))
        if kind.is_vector:
            return DType(DType.parse(dtype).scalar, kind.lanes, kind.scalable).text
    return dtype
