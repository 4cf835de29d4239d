"""Translates the statements that call functions: `ParallelFor` and `Launch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.core.build import is_handle
from gossamer_ir.core.integers import wrap_integer
from gossamer_ir.interpret.frame import Exec, Frame
from gossamer_ir.interpret.statements.parallel_chunks import chunks, weight_check
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Expr, Launch, ParallelFor

ArgumentsOf: TypeAlias = Callable[[Frame], list[Any]]


def parallel_for(node: ParallelFor, translator: Translator) -> Exec:
    """Return a parallel loop: calls its function for each chunk, last to first."""
    program, function = translator.program, node.function
    start, extent = translator.expr(node.start), translator.expr(node.extent)
    args, check = _arguments(node.args, translator), weight_check(node, translator)

    def run(frame: Frame) -> None:
        first, count = int(start(frame)), int(extent(frame))
        check(frame)
        for part in chunks(first, count, number=program.chunks):
            ends = [np.int64(wrap_integer(part.start)), np.int64(wrap_integer(part.stop))]
            program.call(function, ends + args(frame))

    return run


def launch(node: Launch, translator: Translator) -> Exec:
    """Return a launch: calls its function once, because the function's thread-bound loops cover the grid."""
    program, function = translator.program, node.function
    args = _arguments(node.args, translator)
    extents = translator.exprs(tuple(thread.extent for thread in node.threads))

    def run(frame: Frame) -> None:
        if all(extent > 0 for extent in extents(frame)):
            program.call(function, args(frame), is_kernel=True)

    return run


def _arguments(nodes: tuple[Expr, ...], translator: Translator) -> ArgumentsOf:
    parts = tuple(_argument(node, translator) for node in nodes)
    return lambda frame: [part(frame) for part in parts]


def _argument(node: Expr, translator: Translator) -> Callable[[Frame], Any]:
    if is_handle(node):
        return lambda frame: _pointer(frame, node.name)
    return translator.expr(node)


def _pointer(frame: Frame, name: str) -> Any:
    array = frame.arrays.get(name)
    return array if array is not None else frame.views[name].array
