"""Reads calls of `T` that are statements or declarations: `T.store`, `T.guard`, `T.func_attr`, ..."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gossamer_ir.analysis.statements.atomic_accumulation import ATOMIC_OPS
from gossamer_ir.nodes import (
    Atomic,
    AtomicOp,
    Barrier,
    CommitGroup,
    Expr,
    Guard,
    Launch,
    ParallelFor,
    Prefetch,
    Stmt,
    Store,
    ThreadExtent,
    WaitGroup,
)
from gossamer_ir.script.parser.arguments.call_arguments import bind, call_name, items, method_of
from gossamer_ir.script.parser.arguments.coercion import convert_for_store, expr_of_dtype
from gossamer_ir.script.parser.arguments.name_lookup import (
    buffer_named,
    index_nodes,
    unknown_member_error,
)
from gossamer_ir.script.parser.arguments.statics import required_bool, required_int, required_text
from gossamer_ir.script.parser.declarations import attributes, facts
from gossamer_ir.script.parser.expressions import index_maps
from gossamer_ir.script.parser.expressions.calls import access_arguments
from gossamer_ir.script.parser.expressions.expression_parsers import expr, index_expr, load_of
from gossamer_ir.script.parser.expressions.range_arguments import parse_range
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.statements import blocks
from gossamer_ir.script.parser.statements.loops import thread_tag

StmtParser: TypeAlias = Callable[[ParserContext, ast.Call], Stmt]
DeclarationParser: TypeAlias = Callable[[ParserContext, ast.Call], None]


def store_to(context: ParserContext, target: list[ast.expr], value: ast.expr) -> Store:
    """Return a store; `target` has the buffer and then its indices."""
    element = load_of(context, buffer_named(context, target[0]), target[1:])
    stored = context.mark(
        convert_for_store(context, expr(context, value, element.dtype), element.dtype), value
    )
    return Store(
        element.buffer, element.indices, expr_of_dtype(context, value, stored, element.dtype)
    )


def _parse_store(context: ParserContext, call: ast.Call) -> Stmt:
    """Parse `T.store(A, i, value=v, predicate=p, nontemporal=True)`; the last two are optional."""
    target, named = access_arguments(context, call)
    arguments = bind(context, named, "value predicate nontemporal", required=1)
    plain = store_to(context, target, arguments["value"])
    predicate = expr(context, arguments["predicate"], "bool") if "predicate" in arguments else None
    nontemporal = "nontemporal" in arguments and required_bool(
        context, arguments["nontemporal"], "the hint nontemporal"
    )
    return Store(plain.buffer, plain.indices, plain.value, predicate, nontemporal)


def _parse_vstore(context: ParserContext, buffer: ast.expr, call: ast.Call) -> Stmt:
    """Parse TVM's `A.vstore([i, j], value, predicate=p)`; the predicate is optional."""
    arguments = bind(context, call, "indices value predicate", required=2)
    plain = store_to(
        context, [buffer, *items(context, arguments["indices"], "indices")], arguments["value"]
    )
    predicate = expr(context, arguments["predicate"], "bool") if "predicate" in arguments else None
    return Store(plain.buffer, plain.indices, plain.value, predicate)


def _parse_atomic(op: AtomicOp) -> StmtParser:
    """Return the parser of `T.atomic_add(Y[P[i]], value)` or another atomic operation."""

    def parse(context: ParserContext, call: ast.Call) -> Stmt:
        arguments = bind(context, call, "element value", required=2)
        element = arguments["element"]
        if not isinstance(element, ast.Subscript):
            raise context.error(
                "element", f"Expected an element, as in T.atomic_{op}(Y[i], 1).", element
            )
        plain = store_to(context, [element.value, *index_nodes(element)], arguments["value"])
        return Atomic(op, plain.buffer, plain.indices, plain.value)

    return parse


def _parse_prefetch(context: ParserContext, call: ast.Call) -> Stmt:
    target, named = access_arguments(context, call)
    bind(context, named, "", required=0)  # refuses any further argument
    element = load_of(context, buffer_named(context, target[0]), target[1:])
    return Prefetch(element.buffer, element.indices)


def _parse_guard(context: ParserContext, call: ast.Call) -> Stmt:
    arguments = bind(context, call, "condition buffer", required=2)
    return Guard(
        expr(context, arguments["condition"], "bool"),
        buffer_named(context, arguments["buffer"]).name,
    )


def _parse_barrier(context: ParserContext, call: ast.Call) -> Stmt:
    bind(context, call, "", required=0)  # refuses any argument
    return Barrier()


def _parse_commit_group(context: ParserContext, call: ast.Call) -> Stmt:
    bind(context, call, "", required=0)  # refuses any argument
    return CommitGroup()


def _parse_wait_group(context: ParserContext, call: ast.Call) -> Stmt:
    arguments = bind(context, call, "pending", required=1)
    return WaitGroup(required_int(context, arguments["pending"], "a number of groups"))


def _arguments(context: ParserContext, node: ast.expr | None) -> tuple[Expr, ...]:
    nodes = [] if node is None else items(context, node, "arguments")
    return tuple([_argument(context, item) for item in nodes])


def _argument(context: ParserContext, node: ast.expr) -> Expr:
    # A buffer is passed by its name, as a pointer; a literal or an expression cannot be one.
    return expr(context, node, "handle" if isinstance(node, ast.Name) else None)


def _parse_parallel_for(context: ParserContext, call: ast.Call) -> Stmt:
    """Parse `T.parallel_for("f", "i", stop, args=[...], weight=..., grain=...)`, or with start and stop."""
    if not 3 <= len(call.args) <= 4:
        message = "T.parallel_for needs a function, a variable and a range."
        raise context.error("arguments", message, call)
    function = required_text(context, call.args[0], "a function's name")
    name = required_text(context, call.args[1], "a variable's name")
    bounds = parse_range(context, call.args[2:], call)
    named = ast.copy_location(ast.Call(call.func, [], call.keywords), call)
    options = bind(context, named, "args weight grain", required=0)
    args = _arguments(context, options.get("args"))
    # The range and the arguments are parsed before: they are evaluated once, when the variable has no value.
    context.scopes.append({})
    var = context.bind_var(name).name
    weight, grain = (
        index_expr(context, options[key]) if key in options else None for key in ("weight", "grain")
    )
    context.scopes.pop()
    return ParallelFor(function, var, bounds.start, bounds.extent, args, weight, grain)


def _parse_launch(context: ParserContext, call: ast.Call) -> Stmt:
    """Parse `T.launch("f", [...], threads={"blockIdx.x": n})`."""
    arguments = bind(context, call, "function args threads", required=1)
    function = required_text(context, arguments["function"], "a function's name")
    args = _arguments(context, arguments.get("args"))
    return Launch(function, args, _threads(context, arguments.get("threads")))


def _threads(context: ParserContext, node: ast.expr | None) -> tuple[ThreadExtent, ...]:
    if node is None:
        return ()
    if not isinstance(node, ast.Dict):
        raise context.error("thread", "Expected threads such as {'blockIdx.x': n}.", node)
    result = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:  # `**` in a dictionary
            raise context.error("thread", "A dictionary cannot be unpacked here.", value)
        extent = ThreadExtent(thread_tag(context, key), index_expr(context, value))
        result.append(context.mark(extent, key))
    return tuple(result)


def _parse_evaluate(context: ParserContext, call: ast.Call) -> None:
    """Parse the published `T.evaluate(0)`, a placeholder for an empty body."""
    node = bind(context, call, "value", required=1)["value"]
    # Anything else would be dropped without a word.
    if not isinstance(node, ast.Constant):
        raise context.error("evaluate", "An expression is not a statement.", call)


CALL_STMT_PARSERS: Mapping[str, StmtParser] = {
    "store": _parse_store,
    **{f"atomic_{op}": _parse_atomic(op) for op in ATOMIC_OPS},
    "prefetch": _parse_prefetch,
    "guard": _parse_guard,
    "barrier": _parse_barrier,
    "commit_group": _parse_commit_group,
    "wait_group": _parse_wait_group,
    "parallel_for": _parse_parallel_for,
    "launch": _parse_launch,
}
"""The parsers of calls that are statements, by their name in `T`."""

METHOD_STMT_PARSERS: Mapping[str, Callable[[ParserContext, ast.expr, ast.Call], Stmt]] = {
    "vstore": _parse_vstore
}
"""The parsers of methods of buffers that are statements."""

DECLARATION_PARSERS: Mapping[str, DeclarationParser] = {
    "where": blocks.parse_where,
    "reads": blocks.parse_reads,
    "writes": blocks.parse_writes,
    "block_attr": attributes.parse_block_attr,
    "sp.iteration_attr": attributes.parse_block_attr,
    "sp_iter_attr": attributes.parse_block_attr,
    "iter_attr": attributes.parse_block_attr,
    "evaluate": _parse_evaluate,
}
"""The parsers of declarations of the enclosing block or iteration, by their name in `T`."""

FUNCTION_DECLARATION_PARSERS: Mapping[str, DeclarationParser] = {
    "func_attr": attributes.parse_func_attr,
    "stage": attributes.parse_stage,
    "sp.assume": facts.assume_axes,
    "assume": facts.assume_buffers,
    "assume_buffer_domain": facts.assume_buffer_domain,
    "sp.map": index_maps.declare_map,
}
"""The parsers of declarations of the function, by their name in `T`."""


def parse_call(context: ParserContext, call: ast.Call) -> Stmt | None:
    """Parse a call as a statement; None if it is a declaration. Raises `parse.unknown_call` if neither."""
    name = call_name(call)
    method = method_of(call, METHOD_STMT_PARSERS)
    if method is not None:
        return METHOD_STMT_PARSERS[method.attr](context, method.value, call)
    if name is None:
        raise context.error("statement", "This call is not a statement.", call)
    if name in CALL_STMT_PARSERS:
        return CALL_STMT_PARSERS[name](context, call)
    if name in DECLARATION_PARSERS:
        DECLARATION_PARSERS[name](context, call)
        return None
    if name in FUNCTION_DECLARATION_PARSERS:
        # It holds for the whole function; in a loop or a branch it would seem to hold only there.
        context.require_top(name, call)
        FUNCTION_DECLARATION_PARSERS[name](context, call)
        return None
    parsers = {**CALL_STMT_PARSERS, **DECLARATION_PARSERS, **FUNCTION_DECLARATION_PARSERS}
    raise unknown_member_error(context, call.func, name, parsers)
