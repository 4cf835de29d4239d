"""Dotted names of `T`, and the binding of call arguments to parameter names."""

from __future__ import annotations

import ast
from collections.abc import Container

from gossamer_ir.errors import ParseError
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_support.message_texts import amount


def dotted_name(node: ast.expr) -> str | None:
    """Return `sp.iteration` for `T.sp.iteration`; None if the expression is not a member of T."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id == "T" and parts:
        return ".".join(reversed(parts))
    return None


def call_name(node: ast.AST) -> str | None:
    """Return the dotted name of the member of T that is called; None for anything else."""
    return dotted_name(node.func) if isinstance(node, ast.Call) else None


def method_of(call: ast.Call, methods: Container[str]) -> ast.Attribute | None:
    """Return `A.vload` of the call of a method of a name other than T; None for other calls."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name), attr=method) if name != "T":
            return call.func if method in methods else None
    return None


def bind(
    context: ParserContext, call: ast.Call, names: str, *, required: int
) -> dict[str, ast.expr]:
    """Return the arguments of a call by parameter name.

    `names` lists the parameters, of which the first `required` must be given. Raises `parse.arguments` if
    there are too many, unknown, repeated or missing arguments.
    """
    order = names.split()
    if len(call.args) > len(order):
        most = f"takes at most {amount(len(order), 'argument')}"
        raise _arguments_error(context, call.args[len(order)], most, call)
    arguments = dict(zip(order, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in order:
            message = f"has no argument '{keyword.arg}'; it has {', '.join(order)}"
            raise _arguments_error(context, keyword.value, message, call)
        if keyword.arg in arguments:
            raise _arguments_error(context, keyword.value, f"is given '{keyword.arg}' twice", call)
        arguments[keyword.arg] = keyword.value
    missing = [name for name in order[:required] if name not in arguments]
    if missing:
        raise _arguments_error(context, call, f"needs the argument '{missing[0]}'", call)
    return arguments


def items(context: ParserContext, node: ast.expr, what: str) -> list[ast.expr]:
    """Return the items of a list or tuple display; raises `parse.list` for anything else."""
    if not isinstance(node, ast.List | ast.Tuple):
        raise context.error("list", f"Expected {what} as a list or tuple.", node)
    return node.elts


def items_or_one(node: ast.expr) -> list[ast.expr]:
    """Return the items of a list or tuple display, or the expression itself."""
    return node.elts if isinstance(node, ast.List | ast.Tuple) else [node]


def parameter_names(context: ParserContext, arguments: ast.arguments) -> list[str]:
    """Return the names of the parameters of a function or lambda.

    They must be plain and distinct. Python's grammar accepts repeated names, which only its compiler
    refuses.
    """
    extra = [*arguments.posonlyargs, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for item in extra:
        if item is not None:
            raise context.error("parameter", "Expected plain parameters `name: T.dtype`.", item)
    if arguments.defaults:
        raise context.error(
            "parameter", "A parameter cannot have a default.", arguments.defaults[0]
        )
    names: list[str] = []
    for item in arguments.args:
        if item.arg in names:
            raise context.error("parameter", f"Two parameters have the name '{item.arg}'.", item)
        names.append(item.arg)
    return names


def _arguments_error(
    context: ParserContext, node: ast.AST, problem: str, call: ast.Call
) -> ParseError:
    return context.error("arguments", f"{context.text_of(call.func)} {problem}.", node)
