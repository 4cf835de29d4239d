"""Reads the head of a `for`: `range`, `T.serial`, `T.grid`, `T.parallel`, `T.thread_binding`, ..."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import get_args

import msgspec

from gossamer_ir.nodes import Annotations, Expr, For, Range, Stmt, ThreadTag
from gossamer_ir.script.parser.arguments.call_arguments import call_name
from gossamer_ir.script.parser.arguments.name_lookup import unknown_member_error
from gossamer_ir.script.parser.arguments.statics import required_text, static_text
from gossamer_ir.script.parser.declarations.attributes import parse_annotations
from gossamer_ir.script.parser.expressions.expression_parsers import expr
from gossamer_ir.script.parser.expressions.range_arguments import parse_range
from gossamer_ir.script.parser.state.context import ParserContext

LOOP_CALLS: Mapping[str, str] = {
    "serial": "serial",
    "parallel": "parallel",
    "vectorized": "vectorized",
    "unroll": "unrolled",
    "unrolled": "unrolled",
    "thread_binding": "thread_binding",
    "grid": "serial",
}
"""The calls of `T` that a `for` may iterate over, each with the kind of the loop."""

_KEYWORDS = ("thread", "weight", "grain", "annotations")


class LoopHead(msgspec.Struct, frozen=True):
    """All fields of a loop except its body."""

    var: str
    range: Range
    kind: str
    thread: ThreadTag | None = None
    weight: Expr | None = None
    grain: Expr | None = None
    annotations: Annotations = ()

    def loop(self, body: tuple[Stmt, ...]) -> For:
        """Return the loop with this body."""
        return For(
            self.var,
            self.range.start,
            self.range.extent,
            body,
            self.kind,  # type: ignore[arg-type]  # one of the values of LOOP_CALLS
            self.thread,
            self.weight,
            self.grain,
            self.annotations,
        )


def parse_heads(context: ParserContext, node: ast.For) -> list[LoopHead]:
    """Return the loops of one `for`, outermost first; binds their variables in the current scope."""
    call = node.iter
    name = call_name(call)
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
        name = "serial"
    if not isinstance(call, ast.Call) or name is None:
        hint = f"Expected range or {', '.join(f'T.{kind}' for kind in LOOP_CALLS)}."
        raise context.error("loop", "A for cannot iterate over this.", call, hint=hint)
    if name not in LOOP_CALLS:
        raise unknown_member_error(context, call.func, name, LOOP_CALLS)
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if name == "grid":
        return _grid(context, call, targets)
    if len(targets) != 1:
        raise context.error("target", f"T.{name} defines one variable.", node.target)
    return [_single(context, call, targets[0], LOOP_CALLS[name])]


def _grid(context: ParserContext, call: ast.Call, targets: list[ast.expr]) -> list[LoopHead]:
    if call.keywords or len(call.args) != len(targets):
        raise context.error("target", "T.grid takes one extent for each variable.", call)
    ranges = [
        parse_range(context, arg.elts if isinstance(arg, ast.Tuple) else [arg], arg)
        for arg in call.args
    ]
    return [
        LoopHead(_bind_loop(context, target, bounds), bounds, "serial")
        for target, bounds in zip(targets, ranges, strict=True)
    ]


def _single(context: ParserContext, call: ast.Call, target: ast.expr, kind: str) -> LoopHead:
    bounds = list(call.args)
    options = {word.arg: word.value for word in call.keywords}
    if (
        kind == "thread_binding"
        and len(bounds) > 1
        and static_text(context, bounds[-1]) is not None
    ):
        options["thread"] = bounds.pop()
    for name, value in options.items():
        if name not in _KEYWORDS:
            hint = f"Expected one of {', '.join(_KEYWORDS)}."
            raise context.error("arguments", f"A loop has no argument '{name}'.", value, hint=hint)
    span = parse_range(context, bounds, call)
    var = _bind_loop(context, target, span)
    return LoopHead(
        var,
        span,
        kind,
        _thread(context, kind, options.get("thread"), call),
        _optional(context, options.get("weight")),
        _optional(context, options.get("grain")),
        parse_annotations(context, options["annotations"]) if "annotations" in options else (),
    )


def thread_tag(context: ParserContext, node: ast.expr) -> ThreadTag:
    """Return the name of a thread axis; raises `parse.thread` for anything else."""
    text = required_text(context, node, "a thread axis")
    for tag in get_args(ThreadTag):
        if tag == text:
            return text  # type: ignore[return-value]  # it is one of the tags
    hint = f"Expected one of {', '.join(get_args(ThreadTag))}."
    raise context.error("thread", f"'{text}' is not a thread axis.", node, hint=hint)


def _thread(
    context: ParserContext, kind: str, node: ast.expr | None, call: ast.Call
) -> ThreadTag | None:
    if (node is None) == (kind == "thread_binding"):
        message = "thread= is required by T.thread_binding, and not allowed for other loops."
        raise context.error("thread", message, call)
    return None if node is None else thread_tag(context, node)


def _optional(context: ParserContext, node: ast.expr | None) -> Expr | None:
    return None if node is None else expr(context, node, "int64")


def _bind_loop(context: ParserContext, target: ast.expr, bounds: Range) -> str:
    if not isinstance(target, ast.Name):
        raise context.error("target", "Expected a variable name.", target)
    name = context.bind_var(target.id).name
    context.loops[name] = bounds
    return name
