"""Reads statements and bodies."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Allocate, Binary, If, Iteration, Let, Stmt, Store, While
from gossamer_ir.script.parser.arguments.call_arguments import call_name
from gossamer_ir.script.parser.arguments.coercion import required_in_dtype
from gossamer_ir.script.parser.arguments.name_lookup import (
    buffer_named,
    index_nodes,
    unknown_member_error,
)
from gossamer_ir.script.parser.arguments.statics import required_text
from gossamer_ir.script.parser.declarations.axes import AXIS_READERS
from gossamer_ir.script.parser.declarations.buffers import BUFFERS, alloc_dense
from gossamer_ir.script.parser.expressions.calls import value_dtype
from gossamer_ir.script.parser.expressions.expression_readers import (
    BINARY_OPS,
    expr,
    load_of,
    unify,
    unsupported_operator_error,
)
from gossamer_ir.script.parser.state.block_declarations import BlockDeclarations
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.statements.blocks import AXIS_CALLS, read_iterators, to_block
from gossamer_ir.script.parser.statements.call_statements import read_call, store_to
from gossamer_ir.script.parser.statements.iterations import ITERATION_CALLS, read_head, read_vars
from gossamer_ir.script.parser.statements.loops import read_heads
from gossamer_ir.script.parser.statements.reducers import (
    COMM_REDUCER,
    read_combine,
    read_reducer,
    reducer_of,
)
from gossamer_ir.traversal.names import to_identifier


def read_body(
    ctx: ParserContext, nodes: Sequence[ast.stmt], parts: BlockDeclarations | None = None
) -> tuple[Stmt, ...]:
    """Read a body in a scope of its own; `parts` collects the declarations of a block or iteration."""
    outer, was_top, ctx.parts, ctx.is_top = ctx.parts, ctx.is_top, parts, False
    ctx.scopes.append({})
    result: list[Stmt] = []
    for node in nodes:
        read_statement(ctx, node, result)
    ctx.scopes.pop()
    ctx.parts, ctx.is_top = outer, was_top
    return tuple(result)


def read_statement(ctx: ParserContext, node: ast.stmt, result: list[Stmt]) -> None:
    """Read a statement and append it to `result`; declarations append nothing."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        kind = type(node).__name__
        raise ctx.error("statement", f"{kind} is not a statement of the language.", node)
    stmt = handler(ctx, node)
    if stmt is not None:
        result.append(ctx.mark(stmt, node))


def _pass(ctx: ParserContext, node: ast.Pass) -> None:
    return None


def _expression(ctx: ParserContext, node: ast.Expr) -> Stmt | None:
    # Docstrings and `...` are allowed, so that a text stays a valid Python function.
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str | type(...)):
        return None
    if not isinstance(node.value, ast.Call):
        raise ctx.error("statement", "An expression is not a statement.", node)
    return read_call(ctx, node.value)


def _assign(ctx: ParserContext, node: ast.Assign) -> Stmt | None:
    if len(node.targets) != 1:
        raise ctx.error("target", "Assign to one target at a time.", node)
    target, value = node.targets[0], node.value
    reducer = reducer_of(ctx, value)
    if reducer is not None and isinstance(value, ast.Call):
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        return read_combine(ctx, targets, value, reducer=reducer)
    if isinstance(target, ast.Subscript):
        return store_to(ctx, [target.value, *index_nodes(target)], value)
    name = call_name(value)
    if name in AXIS_CALLS and isinstance(value, ast.Call):
        read_iterators(ctx, target, value)
        return None
    if not isinstance(target, ast.Name):
        raise ctx.error("target", "Expected a variable or an element of a buffer.", target)
    _require_new(ctx, target)
    if isinstance(value, ast.Call) and name is not None:
        if name in AXIS_READERS or name in BUFFERS or name == COMM_REDUCER:
            _declare(ctx, target.id, name, value)
            return None
        if name == "alloc_buffer":
            return _allocate(ctx, target.id, value)
        if name not in ctx.calls:
            raise unknown_member_error(
                ctx, value.func, name, {**AXIS_READERS, **BUFFERS, **ctx.calls}
            )
    result = expr(ctx, value)
    return Let(ctx.bind_var(target.id, dtype_of(result)), result)


def _declare(ctx: ParserContext, target: str, name: str, call: ast.Call) -> None:
    if not ctx.is_top:
        raise ctx.error("nested", f"T.{name} is allowed only at the top level of a function.", call)
    own = ctx.fresh(target)
    if name in AXIS_READERS:
        axis = ctx.mark(AXIS_READERS[name](ctx, own, call), call)
        ctx.function.axes.append(axis)
        return ctx.bind(target, axis)
    if name == COMM_REDUCER:
        reducer = ctx.mark(read_reducer(ctx, own, call), call)
        ctx.function.reducers.append(reducer)
        return ctx.bind(target, reducer)
    buffer = ctx.mark(BUFFERS[name](ctx, own, call), call)
    ctx.function.buffers.append(buffer)
    return ctx.bind(target, buffer)


def _allocate(ctx: ParserContext, target: str, call: ast.Call) -> Stmt:
    buffer = ctx.mark(alloc_dense(ctx, ctx.fresh(target), call), call)
    ctx.bind(target, buffer)
    return Allocate(buffer)


def _annotated_assignment(ctx: ParserContext, node: ast.AnnAssign) -> Stmt:
    if not isinstance(node.target, ast.Name) or node.value is None:
        raise ctx.error("target", "Expected `name: T.dtype = value`.", node)
    _require_new(ctx, node.target)
    dtype = value_dtype(ctx, node.annotation)
    value = required_in_dtype(ctx, node.value, expr(ctx, node.value, dtype), dtype)
    return Let(ctx.bind_var(node.target.id, dtype), value)


def _augmented_assignment(ctx: ParserContext, node: ast.AugAssign) -> Stmt:
    if not isinstance(node.target, ast.Subscript):
        raise _reassignment_error(ctx, node.target)
    op = BINARY_OPS.get(type(node.op))
    if op is None:
        raise unsupported_operator_error(ctx, node, node.op)
    buffer = buffer_named(ctx, node.target.value)
    old = ctx.mark(load_of(ctx, buffer, index_nodes(node.target)), node.target)
    load = ast.copy_location(
        ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target
    )
    new = unify(ctx, (load, node.value), old.dtype)[1]
    value = ctx.mark(Binary(op, old, required_in_dtype(ctx, node.value, new, old.dtype)), node)
    return Store(old.buffer, old.indices, value)


def _if(ctx: ParserContext, node: ast.If) -> Stmt:
    condition = expr(ctx, node.test, "bool")
    return If(condition, read_body(ctx, node.body), read_body(ctx, node.orelse))


def _while(ctx: ParserContext, node: ast.While) -> Stmt:
    if node.orelse:
        raise ctx.error("statement", "A loop has no else.", node.orelse[0])
    return While(expr(ctx, node.test, "bool"), read_body(ctx, node.body))


def _for(ctx: ParserContext, node: ast.For) -> Stmt:
    if node.orelse:
        raise ctx.error("statement", "A loop has no else.", node.orelse[0])
    ctx.scopes.append({})
    heads = read_heads(ctx, node)
    body = read_body(ctx, node.body)
    ctx.scopes.pop()
    for head in reversed(heads):
        del ctx.loops[head.var]
        loop = ctx.mark(head.loop(body), node)
        body = (loop,)
    return loop


def _with_statement(ctx: ParserContext, node: ast.With) -> Stmt | None:
    call = node.items[0].context_expr
    reader = WITH_READERS.get(call_name(call) or "")
    if reader is None or len(node.items) != 1 or not isinstance(call, ast.Call):
        hint = "Expected T.block, T.init or T.sp.iteration."
        raise ctx.error("with", "This is not allowed in a with statement.", call, hint=hint)
    return reader(ctx, node, call)


def _init(ctx: ParserContext, node: ast.With, _call: ast.Call) -> None:
    if ctx.parts is None:
        message = "T.init is allowed only directly in a block or iteration."
        raise ctx.error("outside_block", message, node)
    if ctx.parts.init is not None:
        raise ctx.error("duplicate", "T.init is given twice.", node)
    ctx.parts.init = read_body(ctx, node.body)


def _block(ctx: ParserContext, node: ast.With, call: ast.Call) -> Stmt:
    text = required_text(ctx, call.args[0], "a name") if call.args else "block"
    name = ctx.labels.fresh(to_identifier(text))
    parts = BlockDeclarations("block")
    return to_block(name, parts, read_body(ctx, node.body, parts))


def _iteration(ctx: ParserContext, node: ast.With, call: ast.Call) -> Stmt:
    name, axes, kinds = read_head(ctx, call)
    ctx.scopes.append({})
    names = read_vars(ctx, node.items[0].optional_vars, call, len(kinds))
    parts = BlockDeclarations("iteration")
    body = read_body(ctx, node.body, parts)
    ctx.scopes.pop()
    return Iteration(name, axes, kinds, names, body, parts.init or (), parts.annotations or ())


def _require_new(ctx: ParserContext, target: ast.Name) -> None:
    if ctx.lookup(target.id) is not None:
        raise _reassignment_error(ctx, target)


def _reassignment_error(ctx: ParserContext, target: ast.expr) -> ParseError:
    return ctx.error(
        "reassigned",
        f"'{ctx.text_of(target)}' is already bound, and variables cannot be reassigned.",
        target,
        hint="Use another name, or keep the value in T.alloc_buffer((1,), ...).",
    )


WITH_READERS: dict[str, Callable[[ParserContext, ast.With, ast.Call], Stmt | None]] = {
    "init": _init,
    "block": _block,
    **dict.fromkeys(ITERATION_CALLS, _iteration),
}
"""The calls of `T` that a `with` statement may have, each with its reader."""

_HANDLERS: Mapping[type[ast.stmt], Callable[..., Stmt | None]] = {
    ast.Pass: _pass,
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated_assignment,
    ast.AugAssign: _augmented_assignment,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.With: _with_statement,
}
