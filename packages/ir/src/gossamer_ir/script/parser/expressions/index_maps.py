"""Reads the map of a format: `T.sp.map(lambda io, ii: (io * 4 + ii,), shape=(n,))`."""

from __future__ import annotations

import ast

from gossamer_ir.nodes import IndexMap
from gossamer_ir.script.parser.arguments.call_arguments import bind, parameter_names
from gossamer_ir.script.parser.expressions.expression_readers import index_expr
from gossamer_ir.script.parser.state.context import ParserContext


def declare_map(ctx: ParserContext, call: ast.Call) -> None:
    """Read `T.sp.map(lambda ..., shape=...)`, a map from coordinates of axes to those of the tensor."""
    given = bind(ctx, call, "function shape", required=1)
    set_map(ctx, given["function"])
    if "shape" in given:
        ctx.function.shape = tuple([index_expr(ctx, size) for size in _items(given["shape"])])


def set_map(ctx: ParserContext, node: ast.expr) -> None:
    """Set a lambda as the map of the format."""
    if ctx.function.map is not None:
        raise ctx.error("duplicate", "The map is given twice.", node)
    ctx.function.map = _read(ctx, node)


def _read(ctx: ParserContext, node: ast.expr) -> IndexMap:
    """Read a map. In the published `(lambda i: i // 4, i % 4)`, a tuple in Python, the lambda's body and the
    other items are all results."""
    function, *rest = node.elts if isinstance(node, ast.Tuple) and node.elts else [node]
    if not isinstance(function, ast.Lambda):
        raise ctx.error("map", "Expected a lambda of the axes' coordinates.", node)
    ctx.scopes.append({})
    names = tuple([ctx.bind_var(name).name for name in parameter_names(ctx, function.args)])
    results = tuple([index_expr(ctx, item) for item in (*_items(function.body), *rest)])
    ctx.scopes.pop()
    return ctx.mark(IndexMap(names, results), node)


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]
