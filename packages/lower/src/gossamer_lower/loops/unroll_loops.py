"""Unrolls loops: one copy of the body for each value of the loop variable."""

from __future__ import annotations

from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.build import add, index, integer_value
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import For, Function, Module, Node, Search, Stmt
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_ir.traversal.walk import walk
from gossamer_lower.loops.common_subexpressions import cse_unrolled
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import map_stmts, with_bodies, with_body, with_hoisted_start

MAX_NODES = 25_000
"""The maximum size of one unrolled loop. The largest of the default schedules, for wide blocks, has 18,000.

The compile time of LLVM may grow with the fourth power of the length of straight-line code: 9,000 nodes took
0.2 seconds, 18,000 took 3 seconds, 37,000 a minute, and 73,000 more than a quarter of an hour."""

SEARCH_NODES = 150
"""The size of a search once it is expanded into loops; 260 unrolled searches took LLVM more than five
minutes."""


@lowering_pass(takes=("loop",), without=("blocks",), removes=("unrolled loops",), is_stable=True)
def unroll_loops(module: Module) -> Module:
    """Replace unrolled loops by copies of their body.

    Raises `UnsupportedError`: `lower.unroll_loops.extent` (an extent is not constant),
    `lower.unroll_loops.size` (more than `MAX_NODES` nodes).

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for u in T.unroll(2):
    ...     Y[u] = X[u] * 2.0
    ... ''')
    >>> print(body_text(unroll_loops(before)))
    Y[0] = X[0] * 2.0
    Y[1] = X[1] * 2.0
    """
    return map_functions(module, _unroll_function)


def _unroll_function(function: Function) -> Function:
    namer = namer_of(function)
    body = simplify_body(_body(function.body, function, namer))
    return with_body(function, body)


def _body(body: tuple[Stmt, ...], function: Function, namer: Namer) -> tuple[Stmt, ...]:
    return map_stmts(body, lambda stmt: _stmt(stmt, function, namer))


def _stmt(stmt: Stmt, function: Function, namer: Namer) -> tuple[Stmt, ...]:
    if isinstance(stmt, For) and stmt.kind == "unrolled":
        starts, loop = with_hoisted_start(stmt, function, namer)
        return (*starts, *_copies(loop, function, namer))
    return (with_bodies(stmt, lambda body: _body(body, function, namer)),)


def _copies(loop: For, function: Function, namer: Namer) -> tuple[Stmt, ...]:
    extent = integer_value(loop.extent)
    if extent is None:
        raise UnsupportedError(
            "lower.unroll_loops.extent",
            f"The loop '{loop.var}' is unrolled, but its extent is not constant.",
            hint="Split it by a constant first.",
        )
    # The innermost loops first, so that the size that is checked is the final one.
    unrolled = _body(loop.body, function, namer)
    _require_few(loop, extent * sum(map(_nodes, walk(*unrolled))))
    lets, body = cse_unrolled(unrolled, loop.var, namer=namer)
    # Without an iteration, the loads of the lets may be out of bounds.
    result: list[Stmt] = list(lets) if extent > 0 else []
    for number in range(extent):
        values = {loop.var: add(loop.start, index(number))}
        result += (
            # The first copy takes the place of the original, so it may keep its names.
            with_fresh_names(body, namer, values=values)
            if number
            else substitute_body(body, values)
        )
    return tuple(result)


def _nodes(node: Node) -> int:
    return SEARCH_NODES if isinstance(node, Search) else 1


def _require_few(loop: For, nodes: int) -> None:
    if nodes > MAX_NODES:
        raise UnsupportedError(
            "lower.unroll_loops.size",
            f"The unrolled loop '{loop.var}' would have {nodes} nodes; expected at most {MAX_NODES}.",
            hint="Split it and unroll the inner loop.",
        )
