"""Dtypes of what was read: literals take another's, index storage is widened to int64."""

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
    """A constant of the expected dtype; without one, integers are int64 and bools bool."""
    if expected is None:
        if isinstance(value, float):
            raise ctx.error(
                "literal_dtype",
                f"The dtype of {value} is not known here.",
                node,
                hint=f"Write T.float32({value}) or T.float64({value}).",
            )
        expected = "bool" if isinstance(value, bool) else "int64"
    kind = DType.parse(expected)
    if isinstance(value, bool) != (kind.kind == "bool"):
        raise ctx.error("literal", f"{value} is no value of the dtype {expected}.", node)
    try:
        scalar = constant(value, kind.scalar)
    except ArgumentError as error:
        raise ctx.error("literal", error.diagnostics[0].message, node) from None
    if not kind.is_vector:
        return scalar
    return Broadcast(scalar, Lanes(kind.lanes, kind.scalable))


def widened(found: Expr) -> Expr:
    """An expression of narrower integers as int64, its loads and variables widened each; anything
    else as it is."""
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
    """The dtype that several operands are brought to: int64 where one is, else the first's."""
    dtypes = [dtype_of(item) for item in found]
    if not dtypes:
        return None
    wide = [dtype for dtype in dtypes if DType.parse(dtype).scalar == "int64"]
    return wide[0] if wide else dtypes[0]


def matched(ctx: Context, node: ast.expr, found: Expr, dtype: str) -> Expr:
    """An expression of another dtype, widened where int64 is asked for, or `parse.dtype`."""
    if DType.parse(dtype).scalar == "int64":
        found = ctx.mark(widened(found), node)
    if dtype_of(found) != dtype:
        raise ctx.error(
            "dtype",
            f"This is {dtype_of(found)} where {dtype} is expected.",
            node,
            hint=f'Convert with T.cast(..., "{dtype}").',
        )
    return found


def require_dtype(ctx: Context, node: ast.expr, found: Expr, dtype: str) -> Expr:
    """The expression in the dtype, index storage widened, or `parse.dtype`."""
    return found if dtype_of(found) == dtype else matched(ctx, node, found, dtype)


def stored(ctx: Context, found: Expr, dtype: str) -> Expr:
    """A value as it is stored, which two published habits convert: an integer becomes a float where the
    buffer holds floats; sizes that the text declares with a narrower dtype, such as `m + 1` of an int32
    `m`, are of that dtype, although they are int64 everywhere else. Anything else stays as it is."""
    given, wanted = DType.parse(dtype_of(found)), DType.parse(dtype)
    if not given.is_integer or given == wanted:
        return found
    if wanted.is_float:
        return Cast(dtype, found)
    is_of_sizes = given.scalar == "int64" and any(isinstance(node, Var) for node in walk(found))
    return Cast(dtype, found) if is_of_sizes and _is_declared(ctx, found, dtype) else found


def _is_declared(ctx: Context, found: Expr, dtype: str) -> bool:
    """Whether the text means an expression of a dtype: all that it is made of is."""
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
    """The dtype of a load: the buffer's, with the lanes of a vector index."""
    for found in indices:
        kind = DType.parse(dtype_of(found))
        if kind.is_vector:
            return DType(DType.parse(dtype).scalar, kind.lanes, kind.scalable).text
    return dtype
