"""Reads and writes the map of a format: `T.sp.map(lambda io, ii: (io * 4 + ii,))`."""

from __future__ import annotations

import ast

from gossamer_ir.nodes import IndexMap
from gossamer_ir.script.arguments import bind, parameter_names
from gossamer_ir.script.context import Context
from gossamer_ir.script.expressions import index_expr
from gossamer_ir.script.print_expr import write_index
from gossamer_ir.script.writer import Writer


def declare_map(ctx: Context, call: ast.Call) -> None:
    """`T.sp.map(lambda ...)`: the logical coordinates of the coordinates of the axes."""
    set_map(ctx, bind(ctx, call, "function", required=1)["function"])


def set_map(ctx: Context, node: ast.expr) -> None:
    """Remembers a lambda as the map of the format."""
    if ctx.function.map is not None:
        raise ctx.error("repeated", "The map was given already.", node)
    ctx.function.map = _read(ctx, node)


def write_map(w: Writer, found: IndexMap) -> None:
    """Writes the call that `declare_map` reads."""
    w.put(f"T.sp.map(lambda {', '.join(found.vars)}: (" if found.vars else "T.sp.map(lambda: (")
    for number, result in enumerate(found.results):
        w.put(", " if number else "")
        write_index(w, result, "results", item=number)
    w.put(",))" if len(found.results) == 1 else "))")


def _read(ctx: Context, node: ast.expr) -> IndexMap:
    """As published, also `(lambda i: i // 4, i % 4)`: a tuple to Python, but all of it is the result."""
    function, *rest = node.elts if isinstance(node, ast.Tuple) and node.elts else [node]
    if not isinstance(function, ast.Lambda):
        raise ctx.error("map", "Expected a lambda of the axes' coordinates.", node)
    ctx.scopes.append({})
    names = tuple([ctx.bind_var(name).name for name in parameter_names(ctx, function.args)])
    body = function.body.elts if isinstance(function.body, ast.Tuple) else [function.body]
    results = tuple([index_expr(ctx, item) for item in (*body, *rest)])
    ctx.scopes.pop()
    return ctx.mark(IndexMap(names, results), node)
