"""Reads reducers, `argmax = T.comm_reducer(lambda i, x, j, y: (...), (...))`, and their uses."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gossamer_ir.nodes import Combine, Const, Reducer, Store
from gossamer_ir.script.parser.arguments.call_arguments import bind, items_or_one, parameter_names
from gossamer_ir.script.parser.arguments.coercion import required_in_dtype
from gossamer_ir.script.parser.expressions.expression_readers import expr
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.statements.call_statements import store_to
from gossamer_ir.support.counted import counted

COMM_REDUCER = "comm_reducer"


def read_reducer(ctx: ParserContext, name: str, call: ast.Call) -> Reducer:
    """Read a reducer: a lambda of all left and then all right operands, and the identity constants."""
    given = bind(ctx, call, "fcombine identity", required=2)
    identity = tuple([_constant(ctx, node) for node in items_or_one(given["identity"])])
    function = given["fcombine"]
    if not isinstance(function, ast.Lambda):
        raise ctx.error(
            "reducer", "Expected a lambda of all left operands and then all right ones.", function
        )
    names = parameter_names(ctx, function.args)
    results = items_or_one(function.body)
    if not len(results) == len(identity) or len(names) != 2 * len(identity):
        raise ctx.error(
            "reducer",
            f"The reducer has {counted(len(names), 'operand')}, {counted(len(results), 'result')} and "
            f"{counted(len(identity), 'identity constant')}; expected two, one and one for each "
            "component.",
            call,
        )
    ctx.scopes.append({})
    dtypes = [value.dtype for value in identity]
    lhs, rhs = (
        tuple([ctx.bind_var(item, dtype) for item, dtype in zip(side, dtypes, strict=True)])
        for side in (names[: len(dtypes)], names[len(dtypes) :])
    )
    values = tuple(
        [
            required_in_dtype(ctx, node, expr(ctx, node, dtype), dtype)
            for node, dtype in zip(results, dtypes, strict=True)
        ]
    )
    ctx.scopes.pop()
    return Reducer(name, lhs, rhs, values, identity)


def _constant(ctx: ParserContext, node: ast.expr) -> Const:
    value = expr(ctx, node)
    if not isinstance(value, Const):
        hint = 'Write for example T.int64(-1), or T.min_value("float32").'
        message = f"The identity '{ctx.text_of(node)}' is not a constant."
        raise ctx.error("reducer", message, node, hint=hint)
    return value


def reducer_of(ctx: ParserContext, value: ast.expr) -> Reducer | None:
    """Return the reducer that an expression calls, None if it calls none."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return None
    reducer = ctx.lookup(value.func.id)
    return reducer if isinstance(reducer, Reducer) else None


def read_combine(
    ctx: ParserContext, targets: Sequence[ast.expr], call: ast.Call, *, reducer: Reducer
) -> Combine:
    """Read `C[i], V[i] = argmax(C[i], V[i], j, A[i, j])`: the arguments are the targets, then values."""
    count = len(reducer.lhs)
    if len(targets) != count or len(call.args) != 2 * count or call.keywords:
        given = counted(len(call.args) + len(call.keywords), "argument")
        raise ctx.error(
            "combine",
            f"'{reducer.name}' is called with {given} for {counted(len(targets), 'target')}; expected "
            f"{counted(count, 'target')}, and as arguments these and {counted(count, 'value')}.",
            call,
            hint="Write X[i], Y[i] = f(X[i], Y[i], x, y) for two components.",
        )
    pairs = zip(targets, call.args[:count], call.args[count:], strict=True)
    return Combine(reducer.name, tuple([_store(ctx, *pair) for pair in pairs]))


def _store(ctx: ParserContext, target: ast.expr, old: ast.expr, value: ast.expr) -> Store:
    if not isinstance(target, ast.Subscript):
        message = f"The target '{ctx.text_of(target)}' is not an element of a buffer."
        raise ctx.error("combine", message, target)
    if ast.unparse(target) != ast.unparse(old):
        message = (
            f"The argument is '{ctx.text_of(old)}'; expected the target '{ctx.text_of(target)}'."
        )
        raise ctx.error("combine", message, old)
    slices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return ctx.mark(store_to(ctx, [target.value, *slices], value), target)
