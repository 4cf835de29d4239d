"""Reads expressions: names, operators, comparisons, loads, literals that take another's dtype.

`expected` is the dtype that the surrounding text asks for. In an int64 context loads and variables
of narrower integers (index storage) are widened.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from gossamer_ir.build import dtype_of
from gossamer_ir.constants import constant
from gossamer_ir.dtypes import DType
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import (
    Binary,
    BinaryOp,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    CompareOp,
    DenseFixed,
    Expr,
    IfThenElse,
    Lanes,
    Load,
    Param,
    SparseBuffer,
    Unary,
    UnaryOp,
    Var,
)  # fmt: skip
from gossamer_ir.script.arguments import dotted
from gossamer_ir.script.context import Context
from gossamer_ir.script.statics import Value, static_value

BINARY_OPS: Mapping[type[ast.operator], BinaryOp] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "floormod", ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor",
    ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
COMPARE_OPS: Mapping[type[ast.cmpop], CompareOp] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
UNARY_OPS: Mapping[type[ast.unaryop], UnaryOp] = {
    ast.USub: "neg", ast.Not: "not", ast.Invert: "bitnot",
}  # fmt: skip


def expr(ctx: Context, node: ast.expr, expected: str | None = None) -> Expr:
    """Reads an expression."""
    value = static_value(ctx, node)
    if value is not None:
        return ctx.mark(literal(ctx, node, value, expected), node)
    found: Expr
    if isinstance(node, ast.Call):
        found = _call_handler(ctx, node)(ctx, node, expected)
    else:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise ctx.error(
                "expression", f"{type(node).__name__} is no expression of the language.", node
            )
        found = handler(ctx, node, expected)
    if expected == "int64" and isinstance(found, Var | Load | Cast):
        found = widened(ctx.mark(found, node))
    return ctx.mark(found, node)


def index_expr(ctx: Context, node: ast.expr) -> Expr:
    """Reads an int64 expression: an index, an extent, a size."""
    return expr(ctx, node, "int64")


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


def unify(ctx: Context, nodes: Sequence[ast.expr], expected: str | None) -> list[Expr]:
    """Operands of one dtype: literals take that of the first that is none, index storage is
    widened beside int64; `parse.dtype` where two others differ."""
    is_static = [static_value(ctx, node) is not None for node in nodes]
    found: list[Expr | None] = []
    for node, static in zip(nodes, is_static, strict=True):
        found.append(None if static else expr(ctx, node, expected))
    dtype = _common_dtype([item for item in found if item is not None]) or expected
    result: list[Expr] = []
    for node, item in zip(nodes, found, strict=True):
        if item is None:
            item = expr(ctx, node, dtype)
        elif dtype is not None and dtype_of(item) != dtype:
            item = _matched(ctx, node, item, dtype)
        result.append(item)
    return result


def widened(found: Expr) -> Expr:
    """An expression of narrower integers as int64, its loads and variables widened each; anything
    else as it is."""
    match found:
        case Binary():
            return Binary(found.op, widened(found.lhs), widened(found.rhs))
        case Unary():
            return Unary(found.op, widened(found.operand))
    kind = DType.parse(dtype_of(found))
    if not kind.is_integer or kind.scalar == "int64":
        return found
    return Cast(kind.with_scalar("int64").text, found)


def buffer_named(ctx: Context, node: ast.expr) -> SparseBuffer | Buffer:
    """The buffer a name stands for, or `parse.not_a_buffer`."""
    if not isinstance(node, ast.Name):
        raise ctx.error("not_a_buffer", "Expected the name of a buffer.", node)
    found = lookup(ctx, node)
    if not isinstance(found, SparseBuffer | Buffer):
        raise ctx.error(
            "not_a_buffer",
            f"'{node.id}' is no buffer.",
            node,
            hint=f"Buffers here: {ctx.names((SparseBuffer, Buffer))}.",
        )
    return found


def lookup(ctx: Context, node: ast.Name) -> object:
    """What a name stands for, or `parse.unknown_name`."""
    found = ctx.lookup(node.id)
    if found is None:
        raise ctx.error(
            "unknown_name",
            f"'{node.id}' is not defined here.",
            node,
            hint=f"Variables here: {ctx.names(Var)}.",
        )
    return found


def load_of(ctx: Context, buffer: SparseBuffer | Buffer, nodes: Sequence[ast.expr]) -> Load:
    """A load at indices; its lanes are those of a vector index."""
    indices = []
    for node in nodes:
        if isinstance(node, ast.Slice):
            raise ctx.error("slice", "A slice is no index.", node, hint="Use T.ramp.")
        indices.append(index_expr(ctx, node))
    return Load(buffer.name, tuple(indices), load_dtype(buffer.dtype, indices))


def load_dtype(dtype: str, indices: Sequence[Expr]) -> str:
    """The dtype of a load: the buffer's, with the lanes of a vector index."""
    for found in indices:
        kind = DType.parse(dtype_of(found))
        if kind.is_vector:
            return DType(DType.parse(dtype).scalar, kind.lanes, kind.scalable).text
    return dtype


def index_nodes(node: ast.Subscript) -> Sequence[ast.expr]:
    """The indices of a subscript, one by one."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _call_handler(ctx: Context, node: ast.Call) -> Callable[..., Expr]:
    name = dotted(node.func)
    if name is None and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        name = node.func.id
    if name is None:
        text = ast.unparse(node.func)
        raise ctx.error("unknown_call", f"'{text}' cannot be called here.", node.func)
    handler = ctx.calls.get(name)
    if handler is None:
        raise unknown_member(ctx, node.func, name, ctx.calls)
    return handler


def unknown_member(
    ctx: Context, node: ast.AST, name: str, known: Mapping[str, object]
) -> Exception:
    """The error for a member of T that does not exist (here), naming the nearest that do."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=3, cutoff=0.5) or sorted(known)
    hint = "Did you mean " if len(near) <= 3 else "There are "
    return ctx.error(
        "unknown_call",
        f"T.{name} cannot stand here.",
        node,
        hint=f"{hint}{', '.join(f'T.{item}' for item in near)}?"
        if len(near) <= 3
        else f"{hint}{', '.join(near)}.",
    )


def _common_dtype(found: Sequence[Expr]) -> str | None:
    dtypes = [dtype_of(item) for item in found]
    if not dtypes:
        return None
    wide = [dtype for dtype in dtypes if DType.parse(dtype).scalar == "int64"]
    return wide[0] if wide else dtypes[0]


def _matched(ctx: Context, node: ast.expr, found: Expr, dtype: str) -> Expr:
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
    return found if dtype_of(found) == dtype else _matched(ctx, node, found, dtype)


def _name(ctx: Context, node: ast.Name, expected: str | None) -> Expr:
    found = lookup(ctx, node)
    if isinstance(found, Var):
        return Var(found.name, found.dtype)
    if isinstance(found, DenseFixed):
        return found.length
    if expected == "handle" and isinstance(found, Param | Buffer):
        return Var(found.name, "handle")
    raise ctx.error(
        "not_a_value",
        f"'{node.id}' is {_article(found)}, not a value.",
        node,
        hint=f"Variables here: {ctx.names(Var)}.",
    )


def _article(found: object) -> str:
    if isinstance(found, SparseBuffer | Buffer):
        return "a buffer"
    return "a pointer" if isinstance(found, Param) else "an axis"


def _unary(ctx: Context, node: ast.UnaryOp, expected: str | None) -> Expr:
    if isinstance(node.op, ast.UAdd):
        return expr(ctx, node.operand, expected)
    return Unary(UNARY_OPS[type(node.op)], expr(ctx, node.operand, expected))


def _binary(ctx: Context, node: ast.BinOp, expected: str | None) -> Expr:
    op = BINARY_OPS.get(type(node.op))
    if op is None:
        raise ctx.error("operator", "There is no such operator.", node, hint="Powers: T.pow.")
    lhs, rhs = unify(ctx, (node.left, node.right), expected)
    return Binary(op, lhs, rhs)


def _bool_op(ctx: Context, node: ast.BoolOp, expected: str | None) -> Expr:
    op: BinaryOp = "and" if isinstance(node.op, ast.And) else "or"
    first, *rest = unify(ctx, node.values, expected or "bool")
    for value in rest:
        first = ctx.mark(Binary(op, first, value), node)
    return first


def _compare(ctx: Context, node: ast.Compare, expected: str | None) -> Expr:
    if len(node.ops) > 1:
        raise ctx.error(
            "chained_comparison",
            "Comparisons cannot be chained.",
            node,
            hint="Write a < b and b < c.",
        )
    op = COMPARE_OPS.get(type(node.ops[0]))
    if op is None:
        raise ctx.error("operator", "There is no such comparison.", node)
    lhs, rhs = unify(ctx, (node.left, node.comparators[0]), None)
    return Compare(op, lhs, rhs)


def _if_exp(ctx: Context, node: ast.IfExp, expected: str | None) -> Expr:
    condition = expr(ctx, node.test, "bool")
    if_true, if_false = unify(ctx, (node.body, node.orelse), expected)
    return IfThenElse(condition, if_true, if_false)


def _subscript(ctx: Context, node: ast.Subscript, expected: str | None) -> Expr:
    return load_of(ctx, buffer_named(ctx, node.value), index_nodes(node))


def _attribute(ctx: Context, node: ast.Attribute, expected: str | None) -> Expr:
    raise ctx.error("attribute", f"'{ast.unparse(node)}' is not a value.", node)


_HANDLERS: Mapping[type[ast.expr], Callable[..., Expr]] = {
    ast.Name: _name,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
    ast.IfExp: _if_exp,
    ast.Subscript: _subscript,
    ast.Attribute: _attribute,
}
