"""Dense operands whose rows a sparse iteration gathers: which, and whether to ask for them early."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.build import index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Arg, Decision, Stats, Step
from gossamer_ir.nodes import DenseFixed, Function, Iteration, Load, SparseBuffer
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.recognise.row_reduction import has_taken

DISTANCE = 16
"""Nonzeros between asking for a row and reading it: enough to hide memory behind other work."""


def gathered_operand(function: Function, iteration: Iteration, *, column: str, feature: str) -> str:
    """The one buffer that is read at [column, feature] with both axes dense; "" where there is none
    or several, or its name cannot be told. The name is that of the loop stage."""
    wanted = (index_var(column), index_var(feature))
    found = {
        node.buffer
        for stmt in iteration.body
        for node in collect(Load, stmt)
        if node.indices == wanted
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


class Gather(NamedTuple):
    """Rows of a dense operand ("": there is not one) that a block gathers in a loop over nonzeros."""

    operand: str
    features: int | None
    dtype: str
    block: str
    loop: str

    @property
    def row_bytes(self) -> int:
        """The size of a row; 0 where the number of features is symbolic."""
        return (self.features or 0) * DType.parse(self.dtype).bits // 8

    def operand_bytes(self, stats: Stats | None) -> int:
        """The size of all rows, one for each column of the matrix; 0 where nothing is known of that."""
        return 0 if stats is None else stats.columns * self.row_bytes


class Ahead(NamedTuple):
    """The bytes of a row from which it is asked for ahead, and of the operand that are far."""

    least_row: int
    least_operand: int


def prefetched(gather: Gather, stats: Stats | None, ahead: Ahead) -> Decision:
    """Whether rows are asked for ahead: where one has so many bytes, and the operand, with a row for
    each column of the matrix, so many as well."""
    size = gather.operand_bytes(stats)
    least_row, least_operand = ahead
    why_not = _why_not(gather, stats, least_row=least_row)
    if not why_not and size < least_operand:
        why_not = (
            f"{gather.operand} has {megabytes(size)}, and is near below {megabytes(least_operand)}"
        )
    if why_not:
        return Decision("nothing is asked for ahead", why_not)
    return Decision(
        f"rows of {gather.operand} are asked for {DISTANCE} elements ahead",
        f"a row has {gather.row_bytes} bytes, and asking pays from {least_row}; {gather.operand} has "
        f"{megabytes(size)}, and is far from {megabytes(least_operand)} on",
        (_prefetch(gather),),
    )


def _why_not(gather: Gather, stats: Stats | None, *, least_row: int) -> str:
    """Why rows are not asked for, wherever the operand is; "" where nothing speaks against it."""
    if not gather.operand:
        return "there is not one operand whose rows are gathered"
    if gather.features is None:
        return f"nobody knows how long the rows of {gather.operand} are"
    if gather.row_bytes < least_row:
        return f"a row of {gather.operand} has {gather.row_bytes} bytes, and asking pays from {least_row}"
    if stats is None:
        return f"nothing is known of the data, so nobody knows whether {gather.operand} is near"
    return ""


def megabytes(size: int) -> str:
    """A size in words."""
    return f"{size / 2**20:.3g} MB"


def _prefetch(gather: Gather) -> Step:
    args: dict[str, Arg] = {
        "block": gather.block, "buffer": gather.operand, "loop": gather.loop, "distance": DISTANCE,
    }  # fmt: skip
    return Step("prefetch", args)
