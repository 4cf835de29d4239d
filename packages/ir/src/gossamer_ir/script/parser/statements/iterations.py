"""Reads the head of a sparse iteration: its axes, kinds, name and variables."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gossamer_ir.core.iteration_axes import all_axis_names
from gossamer_ir.nodes import AttachAxis, FuseAxes, IterationAxis, OverAxis
from gossamer_ir.script.parser.arguments.call_arguments import bind, call_name, items
from gossamer_ir.script.parser.arguments.name_lookup import unknown_member_error
from gossamer_ir.script.parser.arguments.statics import required_text
from gossamer_ir.script.parser.declarations.axes import axis_argument
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.traversal.names import to_identifier
from gossamer_support.message_texts import amount

ITERATION_CALLS = ("sp.iteration", "sp_iter", "iter", "sp.iter")


def parse_head(
    context: ParserContext, call: ast.Call
) -> tuple[str, tuple[IterationAxis, ...], str]:
    """Return the name, axes and kinds of `T.sp.iteration([I, J], "SR", "name")`."""
    arguments = bind(context, call, "axes kinds name", required=3)
    nodes = items(context, arguments["axes"], "axes")
    axes = tuple([context.mark(_axis(context, node), node) for node in nodes])
    kinds = required_text(context, arguments["kinds"], "kinds such as 'SRS'")
    count = len(all_axis_names(axes))
    if len(kinds) != count or set(kinds) - {"S", "R"}:
        letters = amount(count, "letter")
        message = f"Expected {letters} S or R, one for each axis, not '{kinds}'."
        raise context.error("kinds", message, arguments["kinds"])
    name = to_identifier(required_text(context, arguments["name"], "a name"))
    return context.labels.fresh(name), axes, kinds


def parse_vars(
    context: ParserContext, target: ast.expr | None, call: ast.Call, count: int
) -> tuple[str, ...]:
    """Bind the variables after `as`."""
    nodes: Sequence[ast.expr] = ()
    if isinstance(target, ast.List | ast.Tuple):
        nodes = target.elts
    elif target is not None:
        nodes = (target,)
    if len(nodes) != count:
        message = f"Expected {amount(count, 'variable')} after 'as', found {len(nodes)}."
        raise context.error("iteration_vars", message, target or call)
    names = []
    for node in nodes:
        if not isinstance(node, ast.Name):
            raise context.error("target", "Expected a variable name.", node)
        names.append(context.bind_var(node.id).name)
    return tuple(names)


def _axis(context: ParserContext, node: ast.expr) -> IterationAxis:
    if isinstance(node, ast.Starred):
        node = node.value
    name = call_name(node)
    if name is None or not isinstance(node, ast.Call):
        return OverAxis(axis_argument(context, node))
    if name in ("sp.fuse", "fuse"):
        if node.keywords or len(node.args) < 1:
            raise context.error("arguments", "T.sp.fuse takes axes as positional arguments.", node)
        return FuseAxes(tuple([axis_argument(context, item) for item in node.args]))
    if name in ("sp.attach", "attach"):
        arguments = bind(context, node, "axis parent", required=2)
        return AttachAxis(
            axis_argument(context, arguments["axis"]), axis_argument(context, arguments["parent"])
        )
    raise unknown_member_error(context, node.func, name, {"sp.fuse": 1, "sp.attach": 1})
