"""Moves the inits of a program to iterations of their own."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gossamer_ir.nodes import Function, Iteration, Module, Stmt
from gossamer_ir.transform.split_init import split_init
from gossamer_ir.traversal.names import namer_of
from gossamer_support.items_by_name import items_by_name


def separate_inits(module: Module) -> Module:
    """Return the module with each init in an iteration before that of its updates.

    The kernel of a part then initializes all rows in a parallel loop, and its schedule is that of a part that
    adds: formats that visit a row several times, such as tiles, have no schedule with an init.

    >>> from gossamer_ir.script import parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def products(a: T.handle, x: T.handle, y: T.handle, m: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.dense_fixed(4)
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     X = T.sp.match_buffer(x, (J,), "float32")
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I, J], "SR", "products") as [i, j]:
    ...         with T.init():
    ...             Y[i] = 0.0
    ...         Y[i] = Y[i] + A[i, j] * X[j]
    ... ''')
    >>> init, updates = separate_inits(module).functions[0].body
    >>> init.kinds, updates.kinds, updates.init
    ('S', 'SR', ())
    """
    return replace(module, functions=tuple(map(_with_separate_inits, module.functions)))


def _with_separate_inits(function: Function) -> Function:
    return replace(function, body=tuple(_stmts(function)))


def _stmts(function: Function) -> Iterator[Stmt]:
    axes, namer = items_by_name(function.axes), namer_of(function)
    for stmt in function.body:
        if isinstance(stmt, Iteration) and stmt.init:
            yield from split_init(stmt, axes, namer)
        else:
            yield stmt
