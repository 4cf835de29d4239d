"""The chunks and the weights of parallel loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, pairwise

import numpy as np

from gossamer_ir.core.integers import wrap_integer
from gossamer_ir.interpret.frame import Exec, Frame
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import For, ParallelFor


def chunks(start: int, extent: int, *, number: int) -> list[range]:
    """Return at most `number` consecutive parts of start, ..., start + extent - 1 of about equal length, the
    last part first."""
    extent = max(0, extent)
    cuts = [start + extent * part // number for part in range(number + 1)]
    parts = [range(low, high) for low, high in pairwise(cuts) if low < high]
    return parts[::-1]


def iterations_of(node: For, translator: Translator) -> Callable[[Frame], Iterator[np.int64]]:
    """Return a function that yields the values of the variable of a loop, in the order of its iterations."""
    start, extent = translator.expr(node.start), translator.expr(node.extent)
    number = translator.program.chunks if node.kind == "parallel" else 1

    def iterations(frame: Frame) -> Iterator[np.int64]:
        first, count = int(start(frame)), int(extent(frame))
        # Integers of Python do not wrap; a loop variable beyond the largest int64 does.
        to_index = np.int64 if first + count <= 2**63 else _to_index
        if number == 1:
            return map(to_index, range(first, first + count))
        return map(to_index, chain.from_iterable(chunks(first, count, number=number)))

    return iterations


def _to_index(value: int) -> np.int64:
    return np.int64(wrap_integer(value))


def weight_check(node: For | ParallelFor, translator: Translator) -> Exec:
    """Return a function that evaluates the weight at both ends of a loop, and the grain, to detect errors in
    them. They have no effect otherwise.

    The function raises `InterpreterError` if the weight at the end is smaller.
    """
    if node.weight is None and node.grain is None:
        return lambda frame: None
    weight, grain = translator.optional(node.weight), translator.optional(node.grain)
    name, start, extent = node.var, translator.expr(node.start), translator.expr(node.extent)

    def run(frame: Frame) -> None:
        if grain is not None:
            grain(frame)
        if weight is None:
            return
        first, count = start(frame), max(np.int64(0), extent(frame))
        ends = []
        for value in (first, first + count):
            frame.values[name] = value
            ends.append(weight(frame))
        if ends[1] < ends[0]:
            raise InterpreterError(
                f"The weight of loop '{name}' decreases, {ends[0]} to {ends[1]}."
            )

    return run
