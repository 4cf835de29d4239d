"""Reads the map of a format: `T.sp.map(lambda io, ii: (io * 4 + ii,), shape=(n,))`."""

from __future__ import annotations

import ast

from gossamer_ir.nodes import IndexMap
from gossamer_ir.script.parser.arguments.call_arguments import bind, parameter_names
from gossamer_ir.script.parser.expressions.expression_parsers import index_expr
from gossamer_ir.script.parser.state.context import ParserContext


def declare_map(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.sp.map(lambda ..., shape=...)`, a map from coordinates of axes to those of the tensor."""
    arguments = bind(context, call, "function shape", required=1)
    set_map(context, arguments["function"])
    if "shape" in arguments:
        context.function.shape = tuple(
            [index_expr(context, size) for size in _items(arguments["shape"])]
        )


def set_map(context: ParserContext, node: ast.expr) -> None:
    """Set a lambda as the map of the format."""
    if context.function.map is not None:
        raise context.error("duplicate", "The map is given twice.", node)
    context.function.map = _parse_map(context, node)


def _parse_map(context: ParserContext, node: ast.expr) -> IndexMap:
    """Parse a map. In the published `(lambda i: i // 4, i % 4)`, a tuple in Python, the lambda's body and the
    other items are all results."""
    function, *rest = node.elts if isinstance(node, ast.Tuple) and node.elts else [node]
    if not isinstance(function, ast.Lambda):
        raise context.error("map", "Expected a lambda of the axes' coordinates.", node)
    context.scopes.append({})
    names = tuple([context.bind_var(name).name for name in parameter_names(context, function.args)])
    results = tuple([index_expr(context, item) for item in (*_items(function.body), *rest)])
    context.scopes.pop()
    return context.mark(IndexMap(names, results), node)


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]
