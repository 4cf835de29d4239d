"""Reads the declarations of axes, in the paper's and in the RFC's spelling."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from gossamer_ir.nodes import (
    AXES,
    Axis,
    BitmaskVaried,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    Param,
)
from gossamer_ir.script.parser.arguments.call_arguments import bind, items
from gossamer_ir.script.parser.arguments.name_lookup import is_axis, lookup
from gossamer_ir.script.parser.arguments.statics import required_bool, static_text
from gossamer_ir.script.parser.expressions.calls import dtype_argument
from gossamer_ir.script.parser.expressions.expression_parsers import index_expr
from gossamer_ir.script.parser.state.context import ParserContext

NamedArguments: TypeAlias = dict[str, ast.expr]
AxisParser: TypeAlias = Callable[[ParserContext, str, ast.Call], Axis]

_FLAGS = "sorted unique padded"


def handle_argument(context: ParserContext, node: ast.expr) -> str:
    """Return the name of a handle parameter; raises `parse.not_a_handle` for anything else."""
    if isinstance(node, ast.Name):
        value = lookup(context, node)
        if isinstance(value, Param):
            return value.name
    text = context.text_of(node)
    hint = f"Handles here: {context.listed_names(Param)}."
    raise context.error("not_a_handle", f"'{text}' is not a handle parameter.", node, hint=hint)


def axis_argument(context: ParserContext, node: ast.expr) -> str:
    """Return the name of an axis; raises `parse.not_an_axis` for anything else."""
    if isinstance(node, ast.Name):
        value = lookup(context, node)
        if is_axis(value):
            return value.name
    hint = f"Axes here: {context.listed_names(AXES)}."
    raise context.error(
        "not_an_axis", f"'{context.text_of(node)}' is not an axis.", node, hint=hint
    )


def parse_dense_fixed(context: ParserContext, name: str, call: ast.Call) -> Axis:
    """Parse `T.sp.dense_fixed(length, parent=P)`; the published `idtype` is accepted and ignored."""
    # Published scripts have the dtype second, and others the parent. Only a dtype is a text.
    if len(call.args) > 1 and static_text(context, call.args[1]) is None:
        arguments = bind(context, call, "length parent idtype", required=1)
    else:
        arguments = bind(context, call, "length idtype parent", required=1)
    if "idtype" in arguments:
        dtype_argument(context, arguments["idtype"])
    parent = axis_argument(context, arguments["parent"]) if "parent" in arguments else None
    return DenseFixed(name, index_expr(context, arguments["length"]), parent)


def parse_dense_varied(context: ParserContext, name: str, call: ast.Call) -> Axis:
    """Parse `T.sp.dense_varied(P, n, indptr)` or `(P, (n, nnz), indptr)`."""
    arguments = bind(context, call, "parent shape indptr idtype indptr_dtype", required=3)
    length, nnz = _sizes(context, arguments["shape"])
    return DenseVaried(
        name,
        axis_argument(context, arguments["parent"]),
        length,
        nnz,
        handle_argument(context, arguments["indptr"]),
        _storage(context, arguments, "indptr_dtype"),
    )


def parse_compressed_fixed(context: ParserContext, name: str, call: ast.Call) -> Axis:
    """Parse `T.sp.compressed_fixed(P, (n, width), indices)`."""
    names = f"parent shape indices idtype {_FLAGS} indices_dtype"
    arguments = bind(context, call, names, required=3)
    length, width = _sizes(context, arguments["shape"])
    if width is None:
        raise context.error("axis_shape", "Expected (length, width).", arguments["shape"])
    return CompressedFixed(
        name,
        axis_argument(context, arguments["parent"]),
        length,
        width,
        handle_argument(context, arguments["indices"]),
        _storage(context, arguments, "indices_dtype"),
        **_flags(context, arguments),
    )


def parse_compressed_varied(context: ParserContext, name: str, call: ast.Call) -> Axis:
    """Parse `T.sp.compressed_varied(P, (n, nnz), (indptr, indices))`; nnz may be omitted."""
    names = f"parent shape data idtype {_FLAGS} indptr_dtype indices_dtype"
    arguments = bind(context, call, names, required=3)
    length, nnz = _sizes(context, arguments["shape"])
    indptr, indices = _two_handles(context, arguments["data"], "(indptr, indices)")
    return CompressedVaried(
        name,
        axis_argument(context, arguments["parent"]),
        length,
        nnz,
        indptr,
        indices,
        _storage(context, arguments, "indptr_dtype"),
        _storage(context, arguments, "indices_dtype"),
        **_flags(context, arguments),
    )


def parse_bitmask_varied(context: ParserContext, name: str, call: ast.Call) -> Axis:
    """Parse `T.sp.bitmask_varied(P, (n, nnz), (indptr, words))`; nnz may be omitted."""
    names = "parent shape data idtype indptr_dtype words_dtype"
    arguments = bind(context, call, names, required=3)
    length, nnz = _sizes(context, arguments["shape"])
    indptr, words = _two_handles(context, arguments["data"], "(indptr, words)")
    dtype = arguments.get("words_dtype")
    return BitmaskVaried(
        name,
        axis_argument(context, arguments["parent"]),
        length,
        nnz,
        indptr,
        words,
        _storage(context, arguments, "indptr_dtype"),
        "uint64" if dtype is None else dtype_argument(context, dtype),
    )


def _sizes(context: ParserContext, node: ast.expr) -> tuple[Expr, Expr | None]:
    parts: Sequence[ast.expr] = [node]
    if isinstance(node, ast.Tuple | ast.List):
        parts = node.elts
    if not 1 <= len(parts) <= 2:
        raise context.error("axis_shape", "Expected a length, or (length, nnz).", node)
    second = index_expr(context, parts[1]) if len(parts) == 2 else None
    return index_expr(context, parts[0]), second


def _two_handles(context: ParserContext, node: ast.expr, expected: str) -> tuple[str, str]:
    """Return the names of the handles in a pair; `expected` describes the pair in the error."""
    handles = items(context, node, expected)
    if len(handles) != 2:
        raise context.error("axis_data", f"Expected {expected}.", node)
    first, second = handles
    return handle_argument(context, first), handle_argument(context, second)


def _storage(context: ParserContext, arguments: NamedArguments, parameter: str) -> str:
    # The published `idtype` is that of all arrays of an axis; an array may have a dtype of its own.
    node = arguments.get(parameter, arguments.get("idtype"))
    return "int32" if node is None else dtype_argument(context, node)


def _flags(context: ParserContext, arguments: NamedArguments) -> dict[str, bool]:
    return {
        name: required_bool(context, arguments[name], name)
        for name in _FLAGS.split()
        if name in arguments
    }


AXIS_PARSERS: Mapping[str, AxisParser] = {
    "sp.dense_fixed": parse_dense_fixed,
    "sp.dense_varied": parse_dense_varied,
    "sp.compressed_fixed": parse_compressed_fixed,
    "sp.compressed_varied": parse_compressed_varied,
    "sp.bitmask_varied": parse_bitmask_varied,
    "dense_fixed": parse_dense_fixed,
    "dense_variable": parse_dense_varied,
    "dense_varied": parse_dense_varied,
    "sparse_fixed": parse_compressed_fixed,
    "sparse_variable": parse_compressed_varied,
}
"""The parsers of axis declarations, by their name in `T`."""
