"""Reads calls of `T` that are expressions: casts, selects, math functions, searches, vectors."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial

from gossamer_ir.analysis.statements.reductions import REDUCE_OPS, identity
from gossamer_ir.core.build import ONE, zero_of
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import SCALARS, DType
from gossamer_ir.core.expression_kinds import dtype_of, has_lanes
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import (
    SEARCH_KINDS,
    Binary,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Compare,
    Expr,
    IfThenElse,
    LaneReduce,
    Lanes,
    Load,
    Ramp,
    ReduceOp,
    Reinterpret,
    Search,
    Select,
    TransposeReduce,
    VScale,
)
from gossamer_ir.script.parser.arguments.call_arguments import bind, call_name, items
from gossamer_ir.script.parser.arguments.coercion import expr_of_dtype, literal
from gossamer_ir.script.parser.arguments.name_lookup import (
    buffer_named,
    index_nodes,
    plain_buffer_named,
)
from gossamer_ir.script.parser.arguments.statics import (
    required_int,
    required_text,
    static_text,
    static_value,
)
from gossamer_ir.script.parser.expressions.expression_parsers import (
    expr,
    index_expr,
    load_of,
    unify,
)
from gossamer_ir.script.parser.state.context import CallParser, MethodParser, ParserContext

# Five digits: far beyond any register, and small enough that the dtype of a vector is a short name.
_MAX_LANES = 99_999


def dtype_argument(context: ParserContext, node: ast.expr) -> str:
    """Return a dtype, given as a string or as `T.float32`; raises `parse.dtype_name` for anything else."""
    text = node.attr if isinstance(node, ast.Attribute) else required_text(context, node, "a dtype")
    return known_dtype(context, node, text)


def value_dtype(context: ParserContext, node: ast.expr) -> str:
    """Return a dtype of values; raises `parse.dtype_name` for `handle`."""
    dtype = dtype_argument(context, node)
    if dtype == "handle":
        raise context.error("dtype_name", "Expected the dtype of a value, not 'handle'.", node)
    return dtype


def known_dtype(context: ParserContext, node: ast.AST, text: str) -> str:
    """Return the dtype itself; raises `parse.dtype_name` if the text is not a dtype."""
    try:
        return DType.parse(text).text
    except ArgumentError as error:
        diagnostic = error.diagnostics[0]
        raise context.error("dtype_name", diagnostic.message, node, hint=diagnostic.hint) from None


def lanes_argument(context: ParserContext, node: ast.expr) -> Lanes:
    """Return `16`, or `4 * T.vscale()`."""
    if call_name(node) == "vscale":
        return context.mark(Lanes(1, scalable=True), node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for count, scale in ((node.left, node.right), (node.right, node.left)):
            if call_name(scale) == "vscale":
                return context.mark(Lanes(_lane_count(context, count, 1), scalable=True), node)
    return context.mark(Lanes(_lane_count(context, node, 2)), node)


def _lane_count(context: ParserContext, node: ast.expr, least: int) -> int:
    count = required_int(context, node, "lanes")
    if not least <= count <= _MAX_LANES:
        message = f"Expected from {least} to {_MAX_LANES} lanes, not {count}."
        raise context.error("lanes", message, node)
    return count


def _required_scalar(context: ParserContext, node: ast.expr, value: Expr) -> Expr:
    if has_lanes(value):
        raise context.error("vector", "Expected a scalar, not a vector.", node)
    return value


def _convert(dtype: str, context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    node = bind(context, call, "value", required=1)["value"]
    value = static_value(context, node)
    text = static_text(context, node)
    if text is not None:
        try:
            value = float(text)
        except ValueError:
            raise context.error("literal", f"'{text}' is not a number.", node) from None
    if value is None:
        return Cast(dtype, expr(context, node))
    if dtype == "bool" and not isinstance(value, bool):
        value = value != 0
    elif isinstance(value, bool) and dtype != "bool":
        value = int(value)
    return literal(context, node, value, dtype)


def _parse_cast(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    arguments = bind(context, call, "value dtype", required=2)
    dtype = value_dtype(context, arguments["dtype"])
    return Cast(dtype, expr(context, arguments["value"]))


def _parse_reinterpret(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    """Parse `T.reinterpret(x, "int32")`, or `T.reinterpret("int32", x)`; a handle can become int64."""
    arguments = bind(context, call, "value dtype", required=2)
    if static_text(context, arguments["value"]) is not None:
        arguments = {"value": arguments["dtype"], "dtype": arguments["value"]}
    dtype, value = value_dtype(context, arguments["dtype"]), arguments["value"]
    is_name = dtype == "int64" and isinstance(value, ast.Name)
    return Reinterpret(dtype, expr(context, value, "handle" if is_name else None))


def _parse_select(
    kind: type[Select] | type[IfThenElse],
    context: ParserContext,
    call: ast.Call,
    expected: str | None,
) -> Expr:
    arguments = bind(context, call, "condition true_value false_value", required=3)
    condition = expr(context, arguments["condition"], "bool")
    if_true, if_false = unify(
        context, (arguments["true_value"], arguments["false_value"]), expected
    )
    return kind(condition, if_true, if_false)


def _parse_operator(
    op: BinaryOp, context: ParserContext, call: ast.Call, expected: str | None
) -> Expr:
    arguments = bind(context, call, "lhs rhs", required=2)
    lhs, rhs = unify(context, (arguments["lhs"], arguments["rhs"]), expected)
    return Binary(op, lhs, rhs)


def _parse_math(name: str, context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    arity = FUNCTIONS[name].arity
    names = " ".join(("x", "y", "z")[:arity])
    arguments = bind(context, call, f"{names} dtype", required=arity)
    if "dtype" in arguments:
        expected = value_dtype(context, arguments.pop("dtype"))
    args = unify(context, tuple(arguments.values()), expected)
    return Call(name, tuple(args), dtype_of(args[0]))


def _parse_search(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    if len(call.args) < 2:
        raise context.error("arguments", "T.search needs a kind and a buffer.", call)
    kind = required_text(context, call.args[0], "a kind of search")
    if kind not in SEARCH_KINDS:
        raise context.error(
            "search_kind",
            f"'{kind}' is not a kind of search.",
            call.args[0],
            hint=f"Expected one of {', '.join(SEARCH_KINDS)}.",
        )
    buffer = plain_buffer_named(context, call.args[1]).name
    prefix = tuple([index_expr(context, node) for node in call.args[2:]])
    named = ast.copy_location(ast.Call(call.func, [], call.keywords), call)
    arguments = bind(context, named, "begin end value", required=3)
    begin = index_expr(context, arguments["begin"])
    end = index_expr(context, arguments["end"])
    value = index_expr(context, arguments["value"])
    return Search(kind, buffer, prefix, begin, end, value)


def _parse_vscale(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    bind(context, call, "", required=0)
    return VScale()


def _parse_ramp(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    arguments = bind(context, call, "base stride lanes", required=3)
    scalar = DType.parse(expected).scalar if expected else None
    base, stride = unify(context, (arguments["base"], arguments["stride"]), scalar)
    base = _required_scalar(context, arguments["base"], base)
    return Ramp(base, stride, lanes_argument(context, arguments["lanes"]))


def _parse_broadcast(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    arguments = bind(context, call, "value lanes", required=2)
    scalar = DType.parse(expected).scalar if expected else None
    value = _required_scalar(context, arguments["value"], expr(context, arguments["value"], scalar))
    return Broadcast(value, lanes_argument(context, arguments["lanes"]))


def reducer_argument(context: ParserContext, node: ast.expr) -> ReduceOp:
    """Return the name of a built-in reducer; raises `parse.reducer` for anything else."""
    name = required_text(context, node, "a reducer")
    for op in REDUCE_OPS:
        if op == name:
            return op
    hint = f"Expected one of {', '.join(REDUCE_OPS)}."
    raise context.error("reducer", f"'{name}' is not a reducer.", node, hint=hint)


def _parse_lane_reduce(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    arguments = bind(context, call, "op value", required=2)
    return LaneReduce(reducer_argument(context, arguments["op"]), expr(context, arguments["value"]))


def _parse_transpose_reduce(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    """Parse `T.transpose_reduce("add", a, b, ...)`."""
    first, *rest = call.args or [call]
    if not rest or call.keywords:
        message = "T.transpose_reduce needs a reducer and vectors, all as positional arguments."
        raise context.error("arguments", message, call)
    return TransposeReduce(
        reducer_argument(context, first), tuple(unify(context, tuple(rest), None))
    )


def _parse_active_lane_mask(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    """Parse TVM's `T.get_active_lane_mask("boolxvscalex4", base, limit)`: a comparison of a ramp, the form
    that every pass and proof knows."""
    arguments = bind(context, call, "dtype base limit", required=3)
    # TVM calls a bool an unsigned integer of one bit.
    text = required_text(context, arguments["dtype"], "a dtype").replace("uint1x", "boolx")
    dtype = DType.parse(known_dtype(context, arguments["dtype"], text))
    if dtype.kind != "bool" or not dtype.is_vector:
        message = f"Expected a vector of bools such as boolxvscalex4, not '{dtype.text}'."
        raise context.error("vector", message, arguments["dtype"])
    base, limit = (
        _required_scalar(context, arguments[name], index_expr(context, arguments[name]))
        for name in ("base", "limit")
    )
    lanes = Lanes(dtype.lanes, dtype.scalable)
    return Compare("lt", Ramp(base, ONE, lanes), Broadcast(limit, lanes))


def _parse_load(context: ParserContext, call: ast.Call, expected: str | None) -> Expr:
    """Parse `T.load(A, i, j, predicate=p, passthrough=v)`, or `T.load(A[i, j], ...)`."""
    target, named = access_arguments(context, call)
    plain = load_of(context, buffer_named(context, target[0]), target[1:])
    arguments = bind(context, named, "predicate passthrough", required=2)
    predicate = expr(context, arguments["predicate"], "bool")
    passthrough = _passthrough(context, arguments["passthrough"], plain.dtype)
    return Load(plain.buffer, plain.indices, plain.dtype, predicate, passthrough)


def _passthrough(context: ParserContext, node: ast.expr, dtype: str) -> Expr:
    return expr_of_dtype(context, node, expr(context, node, dtype), dtype)


def _zero(dtype_name: str) -> Expr:
    dtype = DType.parse(dtype_name)
    zero = zero_of(dtype.scalar)
    return Broadcast(zero, Lanes(dtype.lanes, dtype.scalable)) if dtype.is_vector else zero


def _parse_vload(
    context: ParserContext, buffer: ast.expr, call: ast.Call, expected: str | None
) -> Expr:
    """Parse TVM's `A.vload([i, j], predicate=p, passthrough=v)`. Without a passthrough, which TVM does not
    have, disabled lanes are zero."""
    arguments = bind(context, call, "indices predicate passthrough", required=1)
    indices = items(context, arguments["indices"], "indices")
    plain = load_of(context, buffer_named(context, buffer), indices)
    if "predicate" in arguments:
        predicate = expr(context, arguments["predicate"], "bool")
        other = arguments.get("passthrough")
        passthrough = (
            _zero(plain.dtype) if other is None else _passthrough(context, other, plain.dtype)
        )
        return Load(plain.buffer, plain.indices, plain.dtype, predicate, passthrough)
    if "passthrough" in arguments:
        message = "A passthrough needs a predicate, which says in which lanes it is the value."
        raise context.error("arguments", message, arguments["passthrough"])
    return plain


def access_arguments(context: ParserContext, call: ast.Call) -> tuple[list[ast.expr], ast.Call]:
    """Return the buffer and indices given as positional arguments, and the call with only its keywords."""
    if not call.args:
        raise context.error("arguments", f"T.{call_name(call)} needs a buffer.", call)
    target = list(call.args)
    if isinstance(target[0], ast.Subscript):
        target[:1] = [target[0].value, *index_nodes(target[0])]
    return target, ast.copy_location(ast.Call(call.func, [], call.keywords), call)


def _parse_limit(
    op: ReduceOp, context: ParserContext, call: ast.Call, expected: str | None
) -> Expr:
    node = bind(context, call, "dtype", required=1)["dtype"]
    dtype = value_dtype(context, node)
    if DType.parse(dtype).is_vector:
        raise context.error("vector", f"Expected a scalar dtype, not '{dtype}'.", node)
    largest = SCALARS[dtype].largest
    if largest:
        return constant(largest if op == "min" else -largest, dtype)
    return identity(op, dtype)


CALL_PARSERS: Mapping[str, CallParser] = {
    **{name: partial(_convert, name) for name in SCALARS if name != "handle"},
    **{name: partial(_parse_math, name) for name in FUNCTIONS},
    **{name: partial(_parse_operator, name) for name in ("min", "max", "floordiv", "floormod")},
    "cast": _parse_cast,
    "reinterpret": _parse_reinterpret,
    "Select": partial(_parse_select, Select),
    "select": partial(_parse_select, Select),
    "if_then_else": partial(_parse_select, IfThenElse),
    "search": _parse_search,
    "vscale": _parse_vscale,
    "ramp": _parse_ramp,
    "Ramp": _parse_ramp,
    "broadcast": _parse_broadcast,
    "Broadcast": _parse_broadcast,
    "lane_reduce": _parse_lane_reduce,
    "transpose_reduce": _parse_transpose_reduce,
    "load": _parse_load,
    "get_active_lane_mask": _parse_active_lane_mask,
    "min_value": partial(_parse_limit, "max"),
    "max_value": partial(_parse_limit, "min"),
}
"""The parsers of calls that are expressions, by their name in `T`."""

METHOD_PARSERS: Mapping[str, MethodParser] = {"vload": _parse_vload}
"""The parsers of methods of buffers that are expressions."""
