"""Dense operands whose rows a sparse iteration gathers."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Function, Iteration, Load, SparseBuffer
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.patterns.row_reduction import RowReduction, has_taken


def gathered_operand(function: Function, iteration: Iteration, *, column: str, feature: str) -> str:
    """Return the loop-stage name of the one buffer with dense axes that is read at [column, feature]; "" if
    there is none or several, or if its name is taken."""
    wanted = (index_var(column), index_var(feature))
    found = {
        node.buffer
        for stmt in iteration.body
        for node in collect(Load, stmt)
        if node.indices == wanted
    }
    dense = {axis.name for axis in function.axes if is_full(axis)}
    names = [
        buffer.name
        for buffer in function.buffers
        if isinstance(buffer, SparseBuffer)
        and buffer.name in found
        and dense.issuperset(buffer.axes)
    ]
    if len(names) != 1:
        return ""
    name = data_name(names[0])
    return "" if has_taken(function, iteration, names={name}) else name


class Gather(NamedTuple):
    """Rows of a dense operand that a block gathers in a loop over nonzeros; the operand is "" if there is not
    exactly one."""

    operand: str
    features: int | None
    dtype: str
    block: str
    loop: str
    feature: str

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row; 0 if the number of features is symbolic."""
        return (self.features or 0) * DType.parse(self.dtype).bits // 8

    def operand_bytes(self, stats: Stats | None) -> int:
        """Return the bytes of all rows, one for each column of the matrix; 0 if unknown."""
        return 0 if stats is None else stats.columns * self.row_bytes


def gather_of(function: Function, iteration: Iteration, pattern: RowReduction) -> Gather:
    """Return the rows of the dense operand that the loop over the elements of a row gathers."""
    operand = gathered_operand(
        function, iteration, column=pattern.position, feature=pattern.feature
    )
    return Gather(
        operand, pattern.features, pattern.dtype, pattern.block, pattern.position, pattern.feature
    )
