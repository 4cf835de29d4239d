"""Reads the parameters of a function. Integers that are used as sizes become int64."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache, partial

from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Param, Var
from gossamer_ir.script.parser.arguments.call_arguments import (
    bind,
    call_name,
    dotted_name,
    parameter_names,
)
from gossamer_ir.script.parser.declarations.axes import AXIS_PARSERS
from gossamer_ir.script.parser.declarations.buffers import BUFFER_PARSERS, parameter_buffer
from gossamer_ir.script.parser.expressions.calls import dtype_argument, known_dtype
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.syntax import child_nodes, syntax_nodes

_SIZED = {*AXIS_PARSERS, *BUFFER_PARSERS, "alloc_buffer", "Buffer"}


def parse_parameters(context: ParserContext, node: ast.FunctionDef) -> None:
    """Parse the parameters, bind their names and append them to the function's parts."""
    arguments = node.args
    parameter_names(context, arguments)
    for item in arguments.args:
        item.annotation = _as_call(item.annotation)
    sizes = cache(partial(names_in_sizes, node))
    for item in arguments.args:
        _parse_parameter(context, item, sizes)
    for item in arguments.args:
        if isinstance(item.annotation, ast.Call) and call_name(item.annotation) == "Buffer":
            _parse_buffer(context, item.arg, item.annotation)


def _as_call(annotation: ast.expr | None) -> ast.expr | None:
    """Return the annotation, with the older `T.Buffer[(m, n), "float32"]` as the equivalent call."""
    if not isinstance(annotation, ast.Subscript) or dotted_name(annotation.value) != "Buffer":
        return annotation
    indices = annotation.slice
    is_shape = isinstance(indices, ast.Tuple) and not any(map(_is_dtype, indices.elts))
    args = [indices] if is_shape or not isinstance(indices, ast.Tuple) else indices.elts
    return ast.copy_location(ast.Call(annotation.value, args, []), annotation)


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def names_in_sizes(node: ast.AST) -> frozenset[str]:
    """Return the names that occur in a length, nnz, width or shape."""
    names: set[str] = set()
    for call in syntax_nodes(node):
        if isinstance(call, ast.Call) and call_name(call) in _SIZED:
            stack: list[ast.AST] = [*call.args, *(word.value for word in call.keywords)]
            while stack:
                item = stack.pop()
                if isinstance(item, ast.Name):
                    names.add(item.id)
                elif not isinstance(item, ast.Call | ast.Subscript):
                    stack += child_nodes(item)
    return frozenset(names)


def _parse_parameter(
    context: ParserContext, item: ast.arg, sizes: Callable[[], frozenset[str]]
) -> None:
    declared = dtype = _dtype(context, item)
    if dtype not in ("int64", "handle") and DType.parse(dtype).is_integer and item.arg in sizes():
        dtype = "int64"
    param = context.mark(Param(context.fresh(item.arg), dtype), item)
    context.declared[param.name] = declared
    context.function.params.append(param)
    context.bind(item.arg, param if dtype == "handle" else Var(param.name, dtype))


def _dtype(context: ParserContext, item: ast.arg) -> str:
    node = item.annotation
    if node is None:
        raise context.error("parameter", f"The parameter '{item.arg}' has no dtype.", item)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return known_dtype(context, node, node.value.removeprefix("T."))
    if isinstance(node, ast.Call):
        name = dotted_name(node.func)
        if name == "Buffer":
            return "handle"
        if name == "var":
            return dtype_argument(context, bind(context, node, "dtype", required=1)["dtype"])
    if dotted_name(node) is None:
        raise context.error("parameter", "Expected a dtype such as T.handle or T.int64.", node)
    return dtype_argument(context, node)


def _parse_buffer(context: ParserContext, name: str, call: ast.Call) -> None:
    """Parse `A: T.Buffer((m, n), "float32")`: a handle `A`, and a buffer `A_buffer` that is bound to it."""
    handle = next(item for item in context.function.params if context.lookup(name) is item)
    buffer = parameter_buffer(context, context.fresh(f"{handle.name}_buffer"), call, handle.name)
    context.function.buffers.append(context.mark(buffer, call))
    context.bind(name, buffer)
