"""Removes the inits of a program, which then adds to its output."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import Iteration, Module, Node
from gossamer_ir.traversal.rewrite import rewrite


def remove_inits(module: Module) -> Module:
    """Return the module without the inits of iterations, which then add to what their outputs contain.

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
    >>> (iteration,) = remove_inits(module).functions[0].body
    >>> iteration.init
    ()
    """
    without: Module = rewrite(module, _without_init)
    return without


def _without_init(node: Node) -> Iteration | None:
    return replace(node, init=()) if isinstance(node, Iteration) else None
