"""What names of the text stand for, and the errors where they stand for nothing fitting."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from gossamer_ir.nodes import Buffer, Param, Reducer, SparseBuffer, Var
from gossamer_ir.script.parser.context import Context


def buffer_named(ctx: Context, node: ast.expr) -> SparseBuffer | Buffer:
    """The buffer a name stands for, or `parse.not_a_buffer`."""
    if not isinstance(node, ast.Name):
        raise ctx.error("not_a_buffer", "Expected the name of a buffer.", node)
    found = lookup(ctx, node)
    if not isinstance(found, (SparseBuffer, Buffer)):
        raise ctx.error(
            "not_a_buffer",
            f"'{node.id}' is no buffer.",
            node,
            hint=f"Buffers here: {ctx.names((SparseBuffer, Buffer))}.",
        )
    return found


def plain_buffer_named(ctx: Context, node: ast.expr) -> SparseBuffer | Buffer:
    """The buffer a name stands for, which is stored as it is indexed; `parse.strides` where it is not."""
    found = buffer_named(ctx, node)
    if found.name in ctx.layouts:
        raise ctx.error(
            "strides",
            f"'{found.name}' has strides or an offset: it is not searched, and nothing is assumed of it.",
            node,
            hint="Pass an array without gaps, or copy its elements to such a buffer.",
        )
    return found


def lookup(ctx: Context, node: ast.Name) -> object:
    """What a name stands for, or `parse.unknown_name`."""
    found = ctx.lookup(node.id)
    if found is None:
        raise ctx.error(
            "unknown_name",
            f"'{node.id}' is not defined here.",
            node,
            hint=f"Variables here: {ctx.names(Var)}.",
        )
    return found


def index_nodes(node: ast.Subscript) -> Sequence[ast.expr]:
    """The indices of a subscript, one by one."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def unknown_member(
    ctx: Context, node: ast.AST, name: str, known: Mapping[str, object]
) -> Exception:
    """The error for a member of T that does not exist (here), naming the nearest that do."""
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    names = ", ".join(f"T.{item}" for item in near or sorted(known))
    hint = f"Did you mean {names}?" if near else f"There are {names}."
    return ctx.error("unknown_call", f"T.{name} cannot stand here.", node, hint=hint)


def article(found: object) -> str:
    """What a thing is, for a message."""
    if isinstance(found, (SparseBuffer, Buffer)):
        return "a buffer"
    if isinstance(found, Reducer):
        return "a reducer"
    return "a pointer" if isinstance(found, Param) else "an axis"
