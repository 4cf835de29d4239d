"""Dense operands whose rows a sparse iteration gathers."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Function, Iteration, Load, SparseBuffer
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.analysis.iterations import axes_of, buffers_by_name


class Gather(msgspec.Struct, frozen=True):
    """Rows of a dense operand that a block gathers in a loop over nonzeros. The operand is None if there is
    not exactly one."""

    operand: str | None
    features: int | None
    dtype: str
    block: str
    loop: str
    feature: str | None

    @property
    def row_bytes(self) -> int:
        """The bytes of a row; 0 if the number of features is symbolic."""
        return (self.features or 0) * DType.parse(self.dtype).bits // 8

    def operand_bytes(self, stats: Stats | None) -> int:
        """Return the bytes of all rows, one for each column of the matrix; 0 if unknown."""
        return 0 if stats is None else stats.columns * self.row_bytes


def gather_of(
    function: Function,
    iteration: Iteration,
    output: SparseBuffer,
    *,
    column: str,
    feature: str | None,
) -> Gather:
    """Return the rows that the loop over columns gathers for an output: those of the one buffer with dense
    axes that is read at [column, feature]."""
    if feature is None:
        return Gather(None, None, output.dtype, iteration.name, column, None)
    wanted = (index_var(column), index_var(feature))
    loads = (load for stmt in iteration.body for load in collect(Load, stmt))
    gathered = {load.buffer for load in loads if load.indices == wanted}
    dense = {axis.name for axis in function.axes if is_full(axis)}
    names = [
        data_name(name)
        for name, buffer in buffers_by_name(function).items()
        if name in gathered and dense.issuperset(buffer.axes)
    ]
    extents = dict(zip(iteration.vars, axes_of(function, iteration), strict=False))
    features = integer_value(extents[feature].length)
    operand = names[0] if len(names) == 1 else None
    return Gather(operand, features, output.dtype, iteration.name, column, feature)
