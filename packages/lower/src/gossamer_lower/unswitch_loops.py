"""Where an array lies decides the same in every iteration: it is asked once, before the loop."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer_ir.by_kind import kinds_in
from gossamer_ir.names import Namer, bound_variables, namer_of
from gossamer_ir.nodes import Expr, For, Function, If, Load, Module, Reinterpret, Stmt, Var
from gossamer_ir.typed_calls import typed
from gossamer_ir.walk import free_vars, rewrite, statements, walk
from gossamer_lower.renamed import renamed
from gossamer_lower.stages import map_functions


@typed
def unswitch_loops(module: Module) -> Module:
    """Takes a flat module. An outermost loop that holds statements under a condition on the address of
    an array is there twice, with the condition and without it; others are short enough to be asked again.

    >>> from gossamer_lower import outline_parallel
    >>> from gossamer_lower.examples import body_text, program
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[i] = X[i]
    ...     if T.reinterpret("int64", x) % 64 > 0:
    ...         Y[i] = 0.0
    ... ''')
    >>> print(body_text(unswitch_loops(outline_parallel(before))))
    if T.reinterpret(x, "int64") % 64 > 0:
        for i in T.serial(n):
            Y[i] = X[i]
            Y[i] = 0.0
    else:
        for i_1 in T.serial(n):
            Y[i_1] = X[i_1]
    """
    return map_functions(module, "flat", "flat", _unswitch_function)


def _unswitch_function(function: Function) -> Function:
    if Reinterpret not in kinds_in(function):
        return function
    namer = namer_of(function)
    return msgspec.structs.replace(function, body=_body(function.body, namer))


def _body(body: tuple[Stmt, ...], namer: Namer) -> tuple[Stmt, ...]:
    return tuple(_statement(stmt, namer) for stmt in body)


def _statement(stmt: Stmt, namer: Namer) -> Stmt:
    match stmt:
        case If():
            return If(stmt.condition, _body(stmt.then_body, namer), _body(stmt.else_body, namer))
        case For():
            return _loop(stmt, namer)
    return stmt


def _loop(loop: For, namer: Namer) -> Stmt:
    condition = next(_conditions(loop), None)
    if condition is None:
        return loop
    where, otherwise = (_where(loop, condition, holds=holds) for holds in (True, False))
    return If(condition, (where,), renamed((otherwise,), namer))


def _conditions(loop: For) -> Iterator[Expr]:
    """The conditions on addresses that a loop does not change."""
    bound = bound_variables((loop,))
    for stmt in statements(loop.body):
        if isinstance(stmt, If) and bound.isdisjoint(free_vars(stmt.condition)):
            nodes = list(walk(stmt.condition))
            is_reading = any(isinstance(node, Load) for node in nodes)
            if not is_reading and any(_is_address(node) for node in nodes):
                yield stmt.condition


def _is_address(node: object) -> bool:
    return isinstance(node, Var) and node.dtype == "handle"


def _where(loop: For, condition: Expr, *, holds: bool) -> For:
    """The loop where a condition holds, or does not."""

    def rule(node: object) -> tuple[Stmt, ...] | None:
        if isinstance(node, If) and node.condition == condition:
            return node.then_body if holds else node.else_body
        return None

    found: For = rewrite(loop, rule)
    return found
