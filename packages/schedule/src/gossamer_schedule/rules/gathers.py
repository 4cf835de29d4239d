"""Dense operands whose rows a sparse iteration gathers: which, and whether to ask for them early."""

from __future__ import annotations

from gossamer_ir.build import index_var
from gossamer_ir.contracts import Arg, Stats, Step
from gossamer_ir.dtypes import DType
from gossamer_ir.nodes import DenseFixed, Function, Iteration, Load, SparseBuffer
from gossamer_ir.walk import walk
from gossamer_schedule.rules.patterns import has_taken

DISTANCE = 16
"""Nonzeros between asking for a row and reading it: enough to hide memory behind other work."""


def gathered_operand(function: Function, iteration: Iteration, *, column: str, feature: str) -> str:
    """The one buffer that is read at [column, feature] with both axes dense; "" where there is none
    or several, or its name cannot be told. The name is that of the loop stage."""
    wanted = (index_var(column), index_var(feature))
    found = {
        node.buffer
        for stmt in iteration.body
        for node in walk(stmt)
        if isinstance(node, Load) and node.indices == wanted
    }
    dense = {axis.name for axis in function.axes if isinstance(axis, DenseFixed)}
    names = [
        buffer.name
        for buffer in function.buffers
        if isinstance(buffer, SparseBuffer)
        and buffer.name in found
        and dense.issuperset(buffer.axes)
    ]
    if len(names) != 1:
        return ""
    name = f"{names[0]}_data"
    return "" if has_taken(function, iteration, names={name}) else name


def row_bytes(features: int | None, dtype: str) -> int:
    """The size of a gathered row; 0 where the number of features is symbolic."""
    return (features or 0) * DType.parse(dtype).bits // 8


def operand_bytes(stats: Stats | None, row: int) -> int:
    """The size of an operand with a row for each column of the matrix; 0 where nothing is known."""
    return 0 if stats is None else stats.columns * row


def prefetch_rows(block: str, operand: str, *, loop: str) -> Step:
    """Asks for rows of the operand ahead in a loop over nonzeros."""
    args: dict[str, Arg] = {
        "block": block, "buffer": operand, "loop": loop, "distance": DISTANCE,
    }  # fmt: skip
    return Step("prefetch", args)
