"""Reads ranges: `n`, `(start, stop)`, `T.from_extent(start, extent)`, and regions of buffers."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.nodes import Range, Region
from gossamer_ir.script.parser.arguments.call_arguments import bind, call_name
from gossamer_ir.script.parser.arguments.name_lookup import buffer_named, index_nodes
from gossamer_ir.script.parser.expressions.expression_parsers import index_expr
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.state.layouts import ranges_in
from gossamer_ir.script.parser.state.range_stops import extent_between


def parse_range(context: ParserContext, nodes: Sequence[ast.expr], origin: ast.AST) -> Range:
    """Return a range given by one argument (stop, or `T.from_extent`) or two (start, stop)."""
    if not 1 <= len(nodes) <= 2:
        raise context.error("range", "Expected (stop) or (start, stop).", origin)
    first = nodes[0]
    if len(nodes) == 1 and isinstance(first, ast.Call) and call_name(first) == "from_extent":
        arguments = bind(context, first, "start extent", required=2)
        start, extent = (
            index_expr(context, arguments["start"]),
            index_expr(context, arguments["extent"]),
        )
        return context.mark(Range(start, extent), first)
    if len(nodes) == 1:
        return context.mark(Range(ZERO, index_expr(context, first)), first)
    start, stop = index_expr(context, first), index_expr(context, nodes[1])
    return context.mark(Range(start, extent_between(start, stop)), origin)


def parse_region(context: ParserContext, node: ast.expr) -> Region:
    """Return a region such as `A[vi, 0:n]`; an index is a range of extent 1."""
    if not isinstance(node, ast.Subscript):
        raise context.error("region", "Expected a region such as A[i, 0:n].", node)
    buffer = buffer_named(context, node.value)
    written = [_dimension(context, item) for item in index_nodes(node)]
    ranges = ranges_in(context.layouts.get(buffer.name), written)
    return context.mark(Region(buffer.name, ranges), node)


def _dimension(context: ParserContext, node: ast.expr) -> Range:
    if isinstance(node, ast.Slice):
        if node.lower is None or node.upper is None or node.step is not None:
            raise context.error("region", "A slice of a region needs a start and a stop.", node)
        return parse_range(context, (node.lower, node.upper), node)
    if call_name(node) == "from_extent":
        return parse_range(context, (node,), node)
    return context.mark(Range(index_expr(context, node), ONE), node)
