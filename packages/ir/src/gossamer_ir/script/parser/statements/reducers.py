"""Reads reducers, `argmax = T.comm_reducer(lambda i, x, j, y: (...), (...))`, and their uses."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gossamer_ir.nodes import Combine, Const, Reducer, Store
from gossamer_ir.script.parser.arguments.call_arguments import bind, items_or_one, parameter_names
from gossamer_ir.script.parser.arguments.coercion import expr_of_dtype
from gossamer_ir.script.parser.expressions.expression_parsers import expr
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.statements.call_statements import store_to
from gossamer_support.message_texts import amount

COMM_REDUCER = "comm_reducer"


def parse_reducer(context: ParserContext, name: str, call: ast.Call) -> Reducer:
    """Parse a reducer: a lambda of all left and then all right operands, and the identity constants."""
    arguments = bind(context, call, "fcombine identity", required=2)
    identity = tuple([_constant(context, node) for node in items_or_one(arguments["identity"])])
    function = arguments["fcombine"]
    if not isinstance(function, ast.Lambda):
        raise context.error(
            "reducer", "Expected a lambda of all left operands and then all right ones.", function
        )
    names = parameter_names(context, function.args)
    results = items_or_one(function.body)
    if not len(results) == len(identity) or len(names) != 2 * len(identity):
        raise context.error(
            "reducer",
            f"The reducer has {amount(len(names), 'operand')}, {amount(len(results), 'result')} and "
            f"{amount(len(identity), 'identity constant')}; expected two, one and one for each "
            "component.",
            call,
        )
    context.scopes.append({})
    dtypes = [value.dtype for value in identity]
    lhs, rhs = (
        tuple([context.bind_var(item, dtype) for item, dtype in zip(side, dtypes, strict=True)])
        for side in (names[: len(dtypes)], names[len(dtypes) :])
    )
    values = tuple(
        [
            expr_of_dtype(context, node, expr(context, node, dtype), dtype)
            for node, dtype in zip(results, dtypes, strict=True)
        ]
    )
    context.scopes.pop()
    return Reducer(name, lhs, rhs, values, identity)


def _constant(context: ParserContext, node: ast.expr) -> Const:
    value = expr(context, node)
    if not isinstance(value, Const):
        hint = 'Write for example T.int64(-1), or T.min_value("float32").'
        message = f"The identity '{context.text_of(node)}' is not a constant."
        raise context.error("reducer", message, node, hint=hint)
    return value


def reducer_of(context: ParserContext, value: ast.expr) -> Reducer | None:
    """Return the reducer that an expression calls, None if it calls none."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return None
    reducer = context.lookup(value.func.id)
    return reducer if isinstance(reducer, Reducer) else None


def parse_combine(
    context: ParserContext, targets: Sequence[ast.expr], call: ast.Call, *, reducer: Reducer
) -> Combine:
    """Parse `C[i], V[i] = argmax(C[i], V[i], j, A[i, j])`: the arguments are the targets, then values."""
    count = len(reducer.lhs)
    if len(targets) != count or len(call.args) != 2 * count or call.keywords:
        passed = amount(len(call.args) + len(call.keywords), "argument")
        raise context.error(
            "combine",
            f"'{reducer.name}' is called with {passed} for {amount(len(targets), 'target')}; expected "
            f"{amount(count, 'target')}, and as arguments these and {amount(count, 'value')}.",
            call,
            hint="Write X[i], Y[i] = f(X[i], Y[i], x, y) for two components.",
        )
    pairs = zip(targets, call.args[:count], call.args[count:], strict=True)
    return Combine(reducer.name, tuple([_store(context, *pair) for pair in pairs]))


def _store(context: ParserContext, target: ast.expr, old: ast.expr, value: ast.expr) -> Store:
    if not isinstance(target, ast.Subscript):
        message = f"The target '{context.text_of(target)}' is not an element of a buffer."
        raise context.error("combine", message, target)
    if ast.unparse(target) != ast.unparse(old):
        actual, expected = context.text_of(old), context.text_of(target)
        message = f"The argument is '{actual}'; expected the target '{expected}'."
        raise context.error("combine", message, old)
    slices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return context.mark(store_to(context, [target.value, *slices], value), target)
