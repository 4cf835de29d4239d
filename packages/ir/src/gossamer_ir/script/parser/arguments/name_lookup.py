"""Resolves names of the text, with errors for names that are undefined or of the wrong kind."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TypeGuard

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import AXES, Axis, Buffer, Param, Reducer, SparseBuffer
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_support.message_texts import nearest


def buffer_named(context: ParserContext, node: ast.expr) -> SparseBuffer | Buffer:
    """Return the buffer that a name refers to; raises `parse.not_a_buffer` if it is not one."""
    if not isinstance(node, ast.Name):
        raise context.error("not_a_buffer", "Expected the name of a buffer.", node)
    value = lookup(context, node)
    if not isinstance(value, (SparseBuffer, Buffer)):
        raise context.error(
            "not_a_buffer",
            f"'{node.id}' is not a buffer.",
            node,
            hint=f"Buffers here: {context.listed_names((SparseBuffer, Buffer))}.",
        )
    return value


def plain_buffer_named(context: ParserContext, node: ast.expr) -> SparseBuffer | Buffer:
    """Return the buffer that a name refers to; raises `parse.strides` if it has strides or an offset."""
    buffer = buffer_named(context, node)
    if buffer.name in context.layouts:
        raise context.error(
            "strides",
            f"'{buffer.name}' has strides or an offset, so it cannot be searched or have facts.",
            node,
            hint="Pass a contiguous array, or copy the elements to a buffer without strides.",
        )
    return buffer


def lookup(context: ParserContext, node: ast.Name) -> object:
    """Return the object of a name; raises `parse.unknown_name` if it is not defined."""
    value = context.lookup(node.id)
    if value is None:
        near = nearest(node.id, context.names(object))
        names = context.listed_names(object)
        hint = f"Did you mean '{near}'?" if near else f"Names here: {names}."
        raise context.error("unknown_name", f"'{node.id}' is not defined here.", node, hint=hint)
    return value


def index_nodes(node: ast.Subscript) -> Sequence[ast.expr]:
    """Return the indices of a subscript."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def unknown_member_error(
    context: ParserContext, node: ast.AST, name: str, members: Mapping[str, object]
) -> ParseError:
    """Return the error for a member of T that does not exist or is not allowed here, with similar names."""
    near = get_close_matches(name, members, n=3, cutoff=0.5)
    names = ", ".join(f"T.{item}" for item in near or sorted(members))
    hint = f"Did you mean {names}?" if near else f"Allowed are: {names}."
    return context.error("unknown_call", f"T.{name} is not allowed here.", node, hint=hint)


def is_axis(value: object) -> TypeGuard[Axis]:
    """Return whether an entity is an axis, of any type."""
    return isinstance(value, AXES)


def kind_of(value: object) -> str:
    """Return the kind of an entity with its article, for a message."""
    if isinstance(value, (SparseBuffer, Buffer)):
        return "a buffer"
    if isinstance(value, Reducer):
        return "a reducer"
    return "a pointer" if isinstance(value, Param) else "an axis"
