"""Reads expressions: names, operators, comparisons, loads, literals.

`expected` is the dtype that the context of an expression requires; literals take it. In an int64 context,
loads and variables of narrower integers (index storage) are widened.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.limits import MAX_DEPTH
from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Compare,
    CompareOp,
    Expr,
    IfThenElse,
    Load,
    Param,
    SparseBuffer,
    Unary,
    UnaryOp,
    Var,
)
from gossamer_ir.script.parser.arguments.call_arguments import dotted_name, method_of
from gossamer_ir.script.parser.arguments.coercion import (
    common_dtype,
    literal,
    load_dtype,
    match_dtype,
    with_int64_operands,
)
from gossamer_ir.script.parser.arguments.name_lookup import (
    buffer_named,
    index_nodes,
    is_axis,
    kind_of,
    lookup,
    unknown_member_error,
)
from gossamer_ir.script.parser.arguments.statics import static_value
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.state.layouts import indices_in

BINARY_OPS: Mapping[type[ast.operator], BinaryOp] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "floormod", ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor",
    ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
COMPARE_OPS: Mapping[type[ast.cmpop], CompareOp] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_OTHER_SYMBOLS: Mapping[type[ast.AST], str] = {
    ast.MatMult: "@",
    ast.Pow: "**",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
"""The operators of Python that the language does not have, as they are written."""
UNARY_OPS: Mapping[type[ast.unaryop], UnaryOp] = {
    ast.USub: "neg",
    ast.Not: "not",
    ast.Invert: "bitnot",
}


# Other expressions: keep their dtype; only literals and declared values change it.
def expr(context: ParserContext, node: ast.expr, expected: str | None = None) -> Expr:
    """Parse an expression."""
    # A value that is known while the script is parsed is a literal, which takes the dtype of its context.
    constant = static_value(context, node)
    if constant is not None:
        return context.mark(literal(context, node, constant, expected), node)
    result: Expr
    if isinstance(node, ast.Call):
        result = _parse_call(context, node, expected)
    else:
        parser = _EXPR_PARSERS.get(type(node))
        if parser is None:
            raise context.error(
                "expression", f"{type(node).__name__} is not an expression of the language.", node
            )
        result = parser(context, node, expected)
    if expected == "int64" and isinstance(result, (Var, Load, Cast)):
        result = with_int64_operands(context.mark(result, node))
    return context.mark(result, node)


def index_expr(context: ParserContext, node: ast.expr) -> Expr:
    """Parse an int64 expression, such as an index, an extent or a size."""
    return expr(context, node, "int64")


def unify(context: ParserContext, nodes: Sequence[ast.expr], expected: str | None) -> list[Expr]:
    """Parse operands that must have one dtype.

    Literals take the dtype of the first operand that is not a literal. If an operand is int64, those of
    narrower integers are widened. Raises `parse.dtype` if other dtypes differ.
    """
    # Literals are parsed last, because the operands beside them decide their dtype.
    is_static = [static_value(context, node) is not None for node in nodes]
    values: list[Expr | None] = []
    for node, static in zip(nodes, is_static, strict=True):
        values.append(None if static else expr(context, node, expected))
    dtype = common_dtype([item for item in values if item is not None]) or expected
    result: list[Expr] = []
    for node, item in zip(nodes, values, strict=True):
        if item is None:
            item = expr(context, node, dtype)
        elif dtype is not None and dtype_of(item) != dtype:
            item = match_dtype(context, node, item, dtype)
        result.append(item)
    return result


def load_of(
    context: ParserContext, buffer: SparseBuffer | Buffer, nodes: Sequence[ast.expr]
) -> Load:
    """Parse a load; it has the lanes of a vector index."""
    indices = []
    for node in nodes:
        if isinstance(node, ast.Slice):
            raise context.error("slice", "A slice is not an index.", node, hint="Use T.ramp.")
        indices.append(index_expr(context, node))
    dtype = load_dtype(buffer.dtype, indices)
    return Load(buffer.name, indices_in(context.layouts.get(buffer.name), indices), dtype)


def _parse_call(context: ParserContext, node: ast.Call, expected: str | None) -> Expr:
    method = method_of(node, context.methods)
    if method is not None:
        return context.methods[method.attr](context, method.value, node, expected)
    return _call_parser(context, node)(context, node, expected)


def _call_parser(context: ParserContext, node: ast.Call) -> Callable[..., Expr]:
    name = dotted_name(node.func)
    # Python's own min and max are parsed like those of T.
    if name is None and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        name = node.func.id
    if name is None:
        text = context.text_of(node.func)
        raise context.error(
            "unknown_call",
            f"'{text}' cannot be called here.",
            node.func,
            hint="A script calls members of T, such as T.exp and T.sp.dense_fixed.",
        )
    parser = context.calls.get(name)
    if parser is None:
        raise unknown_member_error(context, node.func, name, context.calls)
    return parser


def _parse_name(context: ParserContext, node: ast.Name, expected: str | None) -> Expr:
    value = lookup(context, node)
    if isinstance(value, Var):
        return Var(value.name, value.dtype)
    # An axis that holds all coordinates may stand for their number.
    if is_axis(value) and is_full(value):
        return value.length
    if expected == "handle" and isinstance(value, (Param, Buffer)):
        return Var(value.name, "handle")
    raise context.error(
        "not_a_value",
        f"'{node.id}' is {kind_of(value)}, not a value.",
        node,
        hint=f"Variables here: {context.listed_names(Var)}.",
    )


def _parse_unary(context: ParserContext, node: ast.UnaryOp, expected: str | None) -> Expr:
    if isinstance(node.op, ast.UAdd):
        return expr(context, node.operand, expected)
    return Unary(UNARY_OPS[type(node.op)], expr(context, node.operand, expected))


def _parse_binary(context: ParserContext, node: ast.BinOp, expected: str | None) -> Expr:
    op = BINARY_OPS.get(type(node.op))
    if op is None:
        raise unsupported_operator_error(context, node, node.op)
    lhs, rhs = unify(context, (node.left, node.right), expected)
    return Binary(op, lhs, rhs)


def unsupported_operator_error(
    context: ParserContext, node: ast.AST, op: ast.operator | ast.cmpop
) -> ParseError:
    """Return the error for an operator of Python that the language does not have."""
    hint = "Use T.pow for powers." if isinstance(op, ast.Pow) else ""
    message = f"The operator '{_OTHER_SYMBOLS[type(op)]}' is not supported."
    return context.error("operator", message, node, hint=hint)


def _parse_bool_op(context: ParserContext, node: ast.BoolOp, expected: str | None) -> Expr:
    op: BinaryOp = "and" if isinstance(node.op, ast.And) else "or"
    # The chain becomes a nest as deep as it has operands.
    if len(node.values) > MAX_DEPTH:
        raise context.error("depth", f"More than {MAX_DEPTH} operands in one chain.", node)
    first, *rest = unify(context, node.values, expected or "bool")
    for value in rest:
        first = context.mark(Binary(op, first, value), node)
    return first


def _parse_compare(context: ParserContext, node: ast.Compare, expected: str | None) -> Expr:
    if len(node.ops) > 1:
        raise context.error(
            "chained_comparison",
            "Comparisons cannot be chained.",
            node,
            hint="Write a < b and b < c.",
        )
    op = COMPARE_OPS.get(type(node.ops[0]))
    if op is None:
        raise unsupported_operator_error(context, node, node.ops[0])
    lhs, rhs = unify(context, (node.left, node.comparators[0]), None)
    return Compare(op, lhs, rhs)


def _parse_if_exp(context: ParserContext, node: ast.IfExp, expected: str | None) -> Expr:
    condition = expr(context, node.test, "bool")
    if_true, if_false = unify(context, (node.body, node.orelse), expected)
    return IfThenElse(condition, if_true, if_false)


def _parse_subscript(context: ParserContext, node: ast.Subscript, expected: str | None) -> Expr:
    return load_of(context, buffer_named(context, node.value), index_nodes(node))


def _parse_attribute(context: ParserContext, node: ast.Attribute, expected: str | None) -> Expr:
    raise context.error("attribute", f"'{context.text_of(node)}' is not a value.", node)


_EXPR_PARSERS: Mapping[type[ast.expr], Callable[..., Expr]] = {
    ast.Name: _parse_name,
    ast.UnaryOp: _parse_unary,
    ast.BinOp: _parse_binary,
    ast.BoolOp: _parse_bool_op,
    ast.Compare: _parse_compare,
    ast.IfExp: _parse_if_exp,
    ast.Subscript: _parse_subscript,
    ast.Attribute: _parse_attribute,
}
