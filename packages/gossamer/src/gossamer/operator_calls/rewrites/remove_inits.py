"""Removes the inits of a program, which then adds to its output."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import Iteration, Module, Node
from gossamer_ir.traversal.rewrite import rewrite


def remove_inits(module: Module) -> Module:
    """Return the module without the inits of iterations, which then add to what their outputs contain.

    >>> from gossamer.operator_calls.operator_program import Variant, module_of
    >>> from gossamer.operators.spmv import PROGRAM
    >>> (iteration,) = remove_inits(module_of(PROGRAM, Variant())).functions[0].body
    >>> iteration.init
    ()
    """
    without: Module = rewrite(module, _without_init)
    return without


def _without_init(node: Node) -> Iteration | None:
    return replace(node, init=()) if isinstance(node, Iteration) else None
