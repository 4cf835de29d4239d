"""Reads statements and bodies."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import (
    Allocate,
    AsyncCopy,
    Binary,
    If,
    Iteration,
    Let,
    Shuffle,
    ShuffleOp,
    Stmt,
    Store,
    While,
)
from gossamer_ir.script.parser.arguments.call_arguments import bind, call_name
from gossamer_ir.script.parser.arguments.coercion import expr_of_dtype
from gossamer_ir.script.parser.arguments.name_lookup import (
    buffer_named,
    index_nodes,
    unknown_member_error,
)
from gossamer_ir.script.parser.arguments.statics import required_int, required_text
from gossamer_ir.script.parser.declarations.axes import AXIS_PARSERS
from gossamer_ir.script.parser.declarations.buffers import BUFFER_PARSERS, alloc_dense
from gossamer_ir.script.parser.expressions.calls import value_dtype
from gossamer_ir.script.parser.expressions.expression_parsers import (
    BINARY_OPS,
    expr,
    load_of,
    unify,
    unsupported_operator_error,
)
from gossamer_ir.script.parser.state.block_declarations import BlockDeclarations
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.statements.blocks import AXIS_CALLS, parse_iters, to_block
from gossamer_ir.script.parser.statements.call_statements import parse_call, store_to
from gossamer_ir.script.parser.statements.iterations import ITERATION_CALLS, parse_head, parse_vars
from gossamer_ir.script.parser.statements.loops import parse_heads
from gossamer_ir.script.parser.statements.reducers import (
    COMM_REDUCER,
    parse_combine,
    parse_reducer,
    reducer_of,
)
from gossamer_ir.traversal.names import to_identifier


def parse_body(
    context: ParserContext, nodes: Sequence[ast.stmt], declarations: BlockDeclarations | None = None
) -> tuple[Stmt, ...]:
    """Parse a body in a scope of its own; `declarations` collects those of a block or iteration."""
    outer, was_top, context.declarations, context.is_top = (
        context.declarations,
        context.is_top,
        declarations,
        False,
    )
    context.scopes.append({})
    result: list[Stmt] = []
    for node in nodes:
        parse_stmt(context, node, result)
    context.scopes.pop()
    context.declarations, context.is_top = outer, was_top
    return tuple(result)


def parse_stmt(context: ParserContext, node: ast.stmt, result: list[Stmt]) -> None:
    """Parse a statement and append it to `result`; declarations append nothing."""
    parser = _STMT_PARSERS.get(type(node))
    if parser is None:
        kind = type(node).__name__
        raise context.error("statement", f"{kind} is not a statement of the language.", node)
    stmt = parser(context, node)
    if stmt is not None:
        result.append(context.mark(stmt, node))


def _parse_pass(context: ParserContext, node: ast.Pass) -> None:
    return None


def _parse_expr_stmt(context: ParserContext, node: ast.Expr) -> Stmt | None:
    # Docstrings and `...` are allowed, so that a text stays a valid Python function.
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str | type(...)):
        return None
    if not isinstance(node.value, ast.Call):
        raise context.error("statement", "An expression is not a statement.", node)
    return parse_call(context, node.value)


def _parse_assign(context: ParserContext, node: ast.Assign) -> Stmt | None:
    if len(node.targets) != 1:
        raise context.error("target", "Assign to one target at a time.", node)
    target, value = node.targets[0], node.value
    reducer = reducer_of(context, value)
    if reducer is not None and isinstance(value, ast.Call):
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        return parse_combine(context, targets, value, reducer=reducer)
    if isinstance(target, ast.Subscript):
        return store_to(context, [target.value, *index_nodes(target)], value)
    name = call_name(value)
    if name in AXIS_CALLS and isinstance(value, ast.Call):
        parse_iters(context, target, value)
        return None
    if not isinstance(target, ast.Name):
        raise context.error("target", "Expected a variable or an element of a buffer.", target)
    _require_new(context, target)
    if isinstance(value, ast.Call) and name is not None:
        if name in AXIS_PARSERS or name in BUFFER_PARSERS or name == COMM_REDUCER:
            _parse_declare(context, target.id, name, value)
            return None
        if name == "alloc_buffer":
            return _parse_allocate(context, target.id, value)
        if name in SHUFFLES:
            return _parse_shuffle(context, target.id, value, dtype=None)
        if name not in context.calls:
            raise unknown_member_error(
                context, value.func, name, {**AXIS_PARSERS, **BUFFER_PARSERS, **context.calls}
            )
    result = expr(context, value)
    return Let(context.bind_var(target.id, dtype_of(result)), result)


def _parse_declare(context: ParserContext, target: str, name: str, call: ast.Call) -> None:
    context.require_top(name, call)
    unique_name = context.fresh(target)
    if name in AXIS_PARSERS:
        axis = context.mark(AXIS_PARSERS[name](context, unique_name, call), call)
        context.function.axes.append(axis)
        return context.bind(target, axis)
    if name == COMM_REDUCER:
        reducer = context.mark(parse_reducer(context, unique_name, call), call)
        context.function.reducers.append(reducer)
        return context.bind(target, reducer)
    buffer = context.mark(BUFFER_PARSERS[name](context, unique_name, call), call)
    context.function.buffers.append(buffer)
    return context.bind(target, buffer)


def _parse_allocate(context: ParserContext, target: str, call: ast.Call) -> Stmt:
    buffer = context.mark(alloc_dense(context, context.fresh(target), call), call)
    context.bind(target, buffer)
    return Allocate(buffer)


def _parse_annotated_assignment(context: ParserContext, node: ast.AnnAssign) -> Stmt:
    if not isinstance(node.target, ast.Name) or node.value is None:
        raise context.error("target", "Expected `name: T.dtype = value`.", node)
    _require_new(context, node.target)
    dtype = value_dtype(context, node.annotation)
    if isinstance(node.value, ast.Call) and call_name(node.value) in SHUFFLES:
        return _parse_shuffle(context, node.target.id, node.value, dtype=dtype)
    value = expr_of_dtype(context, node.value, expr(context, node.value, dtype), dtype)
    return Let(context.bind_var(node.target.id, dtype), value)


SHUFFLES: Mapping[str, ShuffleOp] = {f"shuffle_{op}": op for op in get_args(ShuffleOp)}
"""The exchanges of values between threads, by their names in `T`."""


def _parse_shuffle(context: ParserContext, name: str, call: ast.Call, *, dtype: str | None) -> Stmt:
    """Parse `T.shuffle_xor(value, offset, width=32)`; the width is optional."""
    arguments = bind(context, call, "value offset width", required=2)
    value = expr(context, arguments["value"], dtype)
    if dtype is not None:
        value = expr_of_dtype(context, arguments["value"], value, dtype)
    offset = required_int(context, arguments["offset"], "an offset")
    width = required_int(context, arguments["width"], "a width") if "width" in arguments else 32
    op = SHUFFLES[call_name(call) or ""]
    return Shuffle(op, context.bind_var(name, dtype_of(value)), value, offset, width)


def _parse_augmented_assignment(context: ParserContext, node: ast.AugAssign) -> Stmt:
    if not isinstance(node.target, ast.Subscript):
        raise _reassignment_error(context, node.target)
    op = BINARY_OPS.get(type(node.op))
    if op is None:
        raise unsupported_operator_error(context, node, node.op)
    buffer = buffer_named(context, node.target.value)
    old = context.mark(load_of(context, buffer, index_nodes(node.target)), node.target)
    load = ast.copy_location(
        ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target
    )
    new = unify(context, (load, node.value), old.dtype)[1]
    value = context.mark(Binary(op, old, expr_of_dtype(context, node.value, new, old.dtype)), node)
    return Store(old.buffer, old.indices, value)


def _parse_if(context: ParserContext, node: ast.If) -> Stmt:
    condition = expr(context, node.test, "bool")
    return If(condition, parse_body(context, node.body), parse_body(context, node.orelse))


def _parse_while(context: ParserContext, node: ast.While) -> Stmt:
    if node.orelse:
        raise context.error("statement", "A loop has no else.", node.orelse[0])
    return While(expr(context, node.test, "bool"), parse_body(context, node.body))


def _parse_for(context: ParserContext, node: ast.For) -> Stmt:
    if node.orelse:
        raise context.error("statement", "A loop has no else.", node.orelse[0])
    context.scopes.append({})
    heads = parse_heads(context, node)
    body = parse_body(context, node.body)
    context.scopes.pop()
    for head in reversed(heads):
        del context.loops[head.var]
        loop = context.mark(head.loop(body), node)
        body = (loop,)
    return loop


def _parse_with_stmt(context: ParserContext, node: ast.With) -> Stmt | None:
    call = node.items[0].context_expr
    parser = WITH_PARSERS.get(call_name(call) or "")
    if parser is None or len(node.items) != 1 or not isinstance(call, ast.Call):
        hint = "Expected T.block, T.init, T.async_copy or T.sp.iteration."
        raise context.error("with", "This is not allowed in a with statement.", call, hint=hint)
    return parser(context, node, call)


def _parse_init(context: ParserContext, node: ast.With, _call: ast.Call) -> None:
    if context.declarations is None:
        message = "T.init is allowed only directly in a block or iteration."
        raise context.error("outside_block", message, node)
    if context.declarations.init is not None:
        raise context.error("duplicate", "T.init is given twice.", node)
    context.declarations.init = parse_body(context, node.body)


def _parse_block(context: ParserContext, node: ast.With, call: ast.Call) -> Stmt:
    text = required_text(context, call.args[0], "a name") if call.args else "block"
    name = context.labels.fresh(to_identifier(text))
    declarations = BlockDeclarations("block")
    return to_block(name, declarations, parse_body(context, node.body, declarations))


def _parse_iteration(context: ParserContext, node: ast.With, call: ast.Call) -> Stmt:
    name, axes, kinds = parse_head(context, call)
    context.scopes.append({})
    names = parse_vars(context, node.items[0].optional_vars, call, len(kinds))
    declarations = BlockDeclarations("iteration")
    body = parse_body(context, node.body, declarations)
    context.scopes.pop()
    return Iteration(
        name, axes, kinds, names, body, declarations.init or (), declarations.annotations or ()
    )


def _parse_async_copy(context: ParserContext, node: ast.With, call: ast.Call) -> Stmt:
    bind(context, call, "", required=0)  # refuses any argument
    return AsyncCopy(parse_body(context, node.body))


def _require_new(context: ParserContext, target: ast.Name) -> None:
    if context.lookup(target.id) is not None:
        raise _reassignment_error(context, target)


def _reassignment_error(context: ParserContext, target: ast.expr) -> ParseError:
    return context.error(
        "reassigned",
        f"'{context.text_of(target)}' is already bound, and variables cannot be reassigned.",
        target,
        hint="Use another name, or keep the value in T.alloc_buffer((1,), ...).",
    )


WITH_PARSERS: dict[str, Callable[[ParserContext, ast.With, ast.Call], Stmt | None]] = {
    "init": _parse_init,
    "block": _parse_block,
    "async_copy": _parse_async_copy,
    **dict.fromkeys(ITERATION_CALLS, _parse_iteration),
}
"""The calls of `T` that a `with` statement may have, each with its parser."""

_STMT_PARSERS: Mapping[type[ast.stmt], Callable[..., Stmt | None]] = {
    ast.Pass: _parse_pass,
    ast.Expr: _parse_expr_stmt,
    ast.Assign: _parse_assign,
    ast.AnnAssign: _parse_annotated_assignment,
    ast.AugAssign: _parse_augmented_assignment,
    ast.If: _parse_if,
    ast.While: _parse_while,
    ast.For: _parse_for,
    ast.With: _parse_with_stmt,
}
