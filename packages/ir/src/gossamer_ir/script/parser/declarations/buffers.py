"""Reads the declarations of buffers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias, get_args

from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import AnyBuffer, Buffer, Const, Expr, Scope, SparseBuffer
from gossamer_ir.script.parser.arguments.call_arguments import bind, items_or_one
from gossamer_ir.script.parser.arguments.statics import required_int, required_text, static_value
from gossamer_ir.script.parser.declarations.axes import (
    NamedArguments,
    axis_argument,
    handle_argument,
)
from gossamer_ir.script.parser.declarations.strides import parse_layout, with_offset
from gossamer_ir.script.parser.expressions.calls import value_dtype
from gossamer_ir.script.parser.expressions.expression_parsers import expr, index_expr
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.state.layouts import AnyLayout, NestedLayout

_FRAGMENTS = ("wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator")
"""The published scopes of the operands of matrix instructions. All become the scope 'fragment', because
the intrinsic determines which operand a buffer is."""

BufferParser: TypeAlias = Callable[[ParserContext, str, ast.Call], AnyBuffer]

_SPARSE = "dtype scope extra_storage default default_value offsets"


def match_sparse(context: ParserContext, name: str, call: ast.Call) -> SparseBuffer:
    """Parse `T.sp.match_buffer(a, (I, J), "float32")`; a number as fourth argument is the published
    `extra_storage`."""
    order = _SPARSE
    if len(call.args) > 3 and static_value(context, call.args[3]) is not None:
        order = "dtype extra_storage default scope default_value offsets"
    arguments = bind(context, call, f"handle axes {order}", required=2)
    return _sparse(context, name, arguments, handle_argument(context, arguments["handle"]))


def alloc_sparse(context: ParserContext, name: str, call: ast.Call) -> SparseBuffer:
    """Parse `T.sp.alloc_buffer((I, J), "float32", scope="local")`."""
    arguments = bind(context, call, f"axes {_SPARSE}", required=1)
    return _sparse(context, name, arguments, None)


_DENSE = "dtype scope strides elem_offset align offset_factor"


def match_dense(context: ParserContext, name: str, call: ast.Call) -> Buffer:
    """Parse `T.match_buffer(a, (m, n), "float32", strides=[ld, 1])`."""
    arguments = bind(context, call, f"handle shape {_DENSE}", required=2)
    return _dense(context, name, arguments, handle_argument(context, arguments["handle"]))


def alloc_dense(context: ParserContext, name: str, call: ast.Call) -> Buffer:
    """Parse `T.alloc_buffer((m, n), "float32", scope="local")`."""
    arguments = bind(context, call, f"shape {_DENSE}", required=1)
    return _dense(context, name, arguments, None)


def parameter_buffer(context: ParserContext, name: str, call: ast.Call, handle: str) -> Buffer:
    """Return the buffer of `A: T.Buffer((m, n), "float32")`, bound to the handle."""
    return _dense(context, name, bind(context, call, f"shape {_DENSE}", required=1), handle)


def shape_argument(context: ParserContext, node: ast.expr) -> tuple[Expr, ...]:
    """Return the sizes of a buffer."""
    return tuple([index_expr(context, item) for item in items_or_one(node)])


def _sparse(
    context: ParserContext, name: str, arguments: NamedArguments, handle: str | None
) -> SparseBuffer:
    dtype = value_dtype(context, arguments["dtype"]) if "dtype" in arguments else "float32"
    extra = arguments.get("extra_storage")
    offsets = arguments.get("offsets")
    return SparseBuffer(
        name,
        tuple([axis_argument(context, node) for node in items_or_one(arguments["axes"])]),
        dtype,
        handle,
        _scope(context, arguments),
        _fill(context, arguments, dtype),
        0 if extra is None or _is_none(extra) else required_int(context, extra, "extra_storage"),
        None if offsets is None else handle_argument(context, offsets),
    )


def _dense(
    context: ParserContext, name: str, arguments: NamedArguments, handle: str | None
) -> Buffer:
    dtype = value_dtype(context, arguments["dtype"]) if "dtype" in arguments else "float32"
    shape = shape_argument(context, arguments["shape"])
    _require_hints(context, arguments)
    offset = _offset(context, arguments)
    layout: AnyLayout = NestedLayout(tuple(range(len(shape))), shape)
    if "strides" in arguments and not _is_none(arguments["strides"]):
        layout = parse_layout(context, arguments["strides"], shape)
    if handle is not None and offset != ZERO:
        layout = with_offset(layout, offset)
    if not layout.is_plain:
        context.layouts[name] = layout
    shape = layout.shape
    return Buffer(name, shape, dtype, handle, _scope(context, arguments))


def _require_hints(context: ParserContext, arguments: NamedArguments) -> None:
    """Check `align` and `offset_factor`, which are then ignored: no pass uses the alignment they declare."""
    for name in ("align", "offset_factor"):
        if name in arguments and required_int(context, arguments[name], name) < -1:
            raise context.error("alignment", f"{name} is not a size.", arguments[name])


def _offset(context: ParserContext, arguments: NamedArguments) -> Expr:
    """Return the number of elements of the array before the first one of the buffer (`elem_offset`)."""
    node = arguments.get("elem_offset")
    if node is None or _is_none(node):
        return ZERO
    offset = index_expr(context, node)
    if (integer_value(offset) or 0) < 0:
        raise context.error(
            "elem_offset",
            "A buffer cannot begin before its array.",
            node,
            hint="Expected the number of elements of the array before the buffer, 0 or more.",
        )
    return offset


def _fill(context: ParserContext, arguments: NamedArguments, dtype: str) -> Const | None:
    node = arguments.get("default", arguments.get("default_value"))
    if node is None or _is_none(node):
        return None
    value = expr(context, node, dtype)
    if not isinstance(value, Const):
        raise context.error("fill", "The fill value must be a constant.", node)
    return value


def _scope(context: ParserContext, arguments: NamedArguments) -> Scope:
    node = arguments.get("scope")
    if node is None:
        return "global"
    text = required_text(context, node, "a scope")
    text = "fragment" if text in _FRAGMENTS else text
    for scope in get_args(Scope):
        if scope == text:
            return text  # type: ignore[return-value]  # it is one of the scopes
    hint = f"Scopes are: {', '.join(get_args(Scope))}."
    raise context.error("scope", f"'{text}' is not a scope.", node, hint=hint)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


BUFFER_PARSERS: Mapping[str, BufferParser] = {
    "sp.match_buffer": match_sparse,
    "match_sparse_buffer": match_sparse,
    "sp.alloc_buffer": alloc_sparse,
    "alloc_sparse_buffer": alloc_sparse,
    "match_buffer": match_dense,
    "decl_buffer": alloc_dense,
}
"""The parsers of buffers of a whole function, by their name in `T`. `T.decl_buffer` allocates a dense
buffer for the function, whereas `T.alloc_buffer` is a statement."""
