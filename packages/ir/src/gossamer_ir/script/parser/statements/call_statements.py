"""Reads calls of `T` that are statements or declarations: `T.store`, `T.guard`, `T.func_attr`, ..."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gossamer_ir.analysis.statements.atomic_accumulation import ATOMIC_OPS
from gossamer_ir.nodes import (
    Atomic,
    AtomicOp,
    Expr,
    Guard,
    Launch,
    ParallelFor,
    Prefetch,
    Stmt,
    Store,
    ThreadExtent,
)
from gossamer_ir.script.parser.arguments.call_arguments import bind, call_name, items, method_of
from gossamer_ir.script.parser.arguments.coercion import required_in_dtype, stored_as
from gossamer_ir.script.parser.arguments.name_lookup import (
    buffer_named,
    index_nodes,
    unknown_member_error,
)
from gossamer_ir.script.parser.arguments.statics import required_bool, required_text
from gossamer_ir.script.parser.declarations import attributes, facts
from gossamer_ir.script.parser.expressions import index_maps
from gossamer_ir.script.parser.expressions.calls import access_arguments
from gossamer_ir.script.parser.expressions.expression_readers import expr, index_expr, load_of
from gossamer_ir.script.parser.expressions.range_arguments import read_range
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.statements import blocks
from gossamer_ir.script.parser.statements.loops import thread_tag

StatementReader: TypeAlias = Callable[[ParserContext, ast.Call], Stmt]
DeclarationReader: TypeAlias = Callable[[ParserContext, ast.Call], None]


def store_to(ctx: ParserContext, target: list[ast.expr], value: ast.expr) -> Store:
    """Return a store; `target` has the buffer and then its indices."""
    element = load_of(ctx, buffer_named(ctx, target[0]), target[1:])
    given = ctx.mark(stored_as(ctx, expr(ctx, value, element.dtype), element.dtype), value)
    return Store(
        element.buffer, element.indices, required_in_dtype(ctx, value, given, element.dtype)
    )


def _store(ctx: ParserContext, call: ast.Call) -> Stmt:
    """Read `T.store(A, i, value=v, predicate=p, nontemporal=True)`; the last two are optional."""
    target, named = access_arguments(ctx, call)
    given = bind(ctx, named, "value predicate nontemporal", required=1)
    plain = store_to(ctx, target, given["value"])
    predicate = expr(ctx, given["predicate"], "bool") if "predicate" in given else None
    nontemporal = "nontemporal" in given and required_bool(
        ctx, given["nontemporal"], "the hint nontemporal"
    )
    return Store(plain.buffer, plain.indices, plain.value, predicate, nontemporal)


def _vstore(ctx: ParserContext, buffer: ast.expr, call: ast.Call) -> Stmt:
    """Read TVM's `A.vstore([i, j], value, predicate=p)`; the predicate is optional."""
    given = bind(ctx, call, "indices value predicate", required=2)
    plain = store_to(ctx, [buffer, *items(ctx, given["indices"], "indices")], given["value"])
    predicate = expr(ctx, given["predicate"], "bool") if "predicate" in given else None
    return Store(plain.buffer, plain.indices, plain.value, predicate)


def _atomic(op: AtomicOp) -> StatementReader:
    """Return the reader of `T.atomic_add(Y[P[i]], value)` or another atomic operation."""

    def read(ctx: ParserContext, call: ast.Call) -> Stmt:
        given = bind(ctx, call, "element value", required=2)
        element = given["element"]
        if not isinstance(element, ast.Subscript):
            raise ctx.error(
                "element", f"Expected an element, as in T.atomic_{op}(Y[i], 1).", element
            )
        plain = store_to(ctx, [element.value, *index_nodes(element)], given["value"])
        return Atomic(op, plain.buffer, plain.indices, plain.value)

    return read


def _prefetch(ctx: ParserContext, call: ast.Call) -> Stmt:
    target, named = access_arguments(ctx, call)
    bind(ctx, named, "", required=0)  # refuses any further argument
    element = load_of(ctx, buffer_named(ctx, target[0]), target[1:])
    return Prefetch(element.buffer, element.indices)


def _guard(ctx: ParserContext, call: ast.Call) -> Stmt:
    given = bind(ctx, call, "condition buffer", required=2)
    return Guard(expr(ctx, given["condition"], "bool"), buffer_named(ctx, given["buffer"]).name)


def _arguments(ctx: ParserContext, node: ast.expr | None) -> tuple[Expr, ...]:
    nodes = [] if node is None else items(ctx, node, "arguments")
    return tuple([_argument(ctx, item) for item in nodes])


def _argument(ctx: ParserContext, node: ast.expr) -> Expr:
    # A buffer is passed by its name, as a pointer; a literal or an expression cannot be one.
    return expr(ctx, node, "handle" if isinstance(node, ast.Name) else None)


def _parallel_for(ctx: ParserContext, call: ast.Call) -> Stmt:
    """Read `T.parallel_for("f", "i", stop, args=[...], weight=..., grain=...)`, or with start and stop."""
    if not 3 <= len(call.args) <= 4:
        message = "T.parallel_for needs a function, a variable and a range."
        raise ctx.error("arguments", message, call)
    function = required_text(ctx, call.args[0], "a function's name")
    name = required_text(ctx, call.args[1], "a variable's name")
    bounds = read_range(ctx, call.args[2:], call)
    named = ast.copy_location(ast.Call(call.func, [], call.keywords), call)
    options = bind(ctx, named, "args weight grain", required=0)
    args = _arguments(ctx, options.get("args"))
    # The range and the arguments are read before: they are evaluated once, when the variable has no value.
    ctx.scopes.append({})
    var = ctx.bind_var(name).name
    weight, grain = (
        index_expr(ctx, options[key]) if key in options else None for key in ("weight", "grain")
    )
    ctx.scopes.pop()
    return ParallelFor(function, var, bounds.start, bounds.extent, args, weight, grain)


def _launch(ctx: ParserContext, call: ast.Call) -> Stmt:
    """Read `T.launch("f", [...], threads={"blockIdx.x": n})`."""
    given = bind(ctx, call, "function args threads", required=1)
    function = required_text(ctx, given["function"], "a function's name")
    args = _arguments(ctx, given.get("args"))
    return Launch(function, args, _threads(ctx, given.get("threads")))


def _threads(ctx: ParserContext, node: ast.expr | None) -> tuple[ThreadExtent, ...]:
    if node is None:
        return ()
    if not isinstance(node, ast.Dict):
        raise ctx.error("thread", "Expected threads such as {'blockIdx.x': n}.", node)
    result = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:  # `**` in a dictionary
            raise ctx.error("thread", "A dictionary cannot be unpacked here.", value)
        extent = ThreadExtent(thread_tag(ctx, key), index_expr(ctx, value))
        result.append(ctx.mark(extent, key))
    return tuple(result)


def _evaluate(ctx: ParserContext, call: ast.Call) -> None:
    """Read the published `T.evaluate(0)`, a placeholder for an empty body."""
    node = bind(ctx, call, "value", required=1)["value"]
    # Anything else would be dropped without a word.
    if not isinstance(node, ast.Constant):
        raise ctx.error("evaluate", "An expression is not a statement.", call)


CALL_STATEMENTS: Mapping[str, StatementReader] = {
    "store": _store,
    **{f"atomic_{op}": _atomic(op) for op in ATOMIC_OPS},
    "prefetch": _prefetch,
    "guard": _guard,
    "parallel_for": _parallel_for,
    "launch": _launch,
}
"""The readers of calls that are statements, by their name in `T`."""

METHOD_STATEMENTS: Mapping[str, Callable[[ParserContext, ast.expr, ast.Call], Stmt]] = {
    "vstore": _vstore
}
"""The readers of methods of buffers that are statements."""

DECLARATIONS: Mapping[str, DeclarationReader] = {
    "where": blocks.where,
    "reads": blocks.reads,
    "writes": blocks.writes,
    "block_attr": attributes.block_attr,
    "sp.iteration_attr": attributes.block_attr,
    "sp_iter_attr": attributes.block_attr,
    "iter_attr": attributes.block_attr,
    "evaluate": _evaluate,
}
"""The readers of declarations of the enclosing block or iteration, by their name in `T`."""

FUNCTION_DECLARATIONS: Mapping[str, DeclarationReader] = {
    "func_attr": attributes.func_attr,
    "stage": attributes.stage,
    "sp.assume": facts.assume_axes,
    "assume": facts.assume_buffers,
    "assume_buffer_domain": facts.assume_buffer_domain,
    "sp.map": index_maps.declare_map,
}
"""The readers of declarations of the function, by their name in `T`."""


def read_call(ctx: ParserContext, call: ast.Call) -> Stmt | None:
    """Read a call as a statement; None if it is a declaration. Raises `parse.unknown_call` if neither."""
    name = call_name(call)
    method = method_of(call, METHOD_STATEMENTS)
    if method is not None:
        return METHOD_STATEMENTS[method.attr](ctx, method.value, call)
    if name is None:
        raise ctx.error("statement", "This call is not a statement.", call)
    if name in CALL_STATEMENTS:
        return CALL_STATEMENTS[name](ctx, call)
    if name in DECLARATIONS:
        DECLARATIONS[name](ctx, call)
        return None
    if name in FUNCTION_DECLARATIONS:
        # It holds for the whole function; in a loop or a branch it would seem to hold only there.
        if not ctx.is_top:
            raise ctx.error(
                "nested", f"T.{name} is allowed only at the top level of a function.", call
            )
        FUNCTION_DECLARATIONS[name](ctx, call)
        return None
    known = {**CALL_STATEMENTS, **DECLARATIONS, **FUNCTION_DECLARATIONS}
    raise unknown_member_error(ctx, call.func, name, known)
