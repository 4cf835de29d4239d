"""Dense operands whose rows a sparse iteration gathers, and whether to prefetch them."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.build import index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.interchange.records import Arg, Decision, Stats, Step
from gossamer_ir.nodes import DenseFixed, Function, Iteration, Load, SparseBuffer
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.recognize.row_reduction import has_taken

DISTANCE = 16
"""Nonzeros between the prefetch of a row and its use: enough work to hide the latency of memory."""


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

    @property
    def row_bytes(self) -> int:
        """Return the bytes of a row; 0 if the number of features is symbolic."""
        return (self.features or 0) * DType.parse(self.dtype).bits // 8

    def operand_bytes(self, stats: Stats | None) -> int:
        """Return the bytes of all rows, one for each column of the matrix; 0 if unknown."""
        return 0 if stats is None else stats.columns * self.row_bytes


class PrefetchThresholds(NamedTuple):
    """Minimum bytes of a row and of the whole operand for prefetching."""

    least_row: int
    least_operand: int


def prefetched(gather: Gather, stats: Stats | None, prefetch: PrefetchThresholds) -> Decision:
    """Return the decision whether rows are prefetched: if a row and the operand, which has a row for each
    column of the matrix, are large enough."""
    size = gather.operand_bytes(stats)
    least_row, least_operand = prefetch
    why_not = _why_not(gather, stats, least_row=least_row)
    if not why_not and size < least_operand:
        why_not = f"{gather.operand} has {megabytes(size)}; prefetching pays from {megabytes(least_operand)}"
    if why_not:
        return Decision("no prefetching", why_not)
    return Decision(
        f"rows of {gather.operand} prefetched {DISTANCE} elements ahead",
        f"a row has {gather.row_bytes} bytes (prefetching pays from {least_row}), and {gather.operand} has "
        f"{megabytes(size)} (prefetching pays from {megabytes(least_operand)})",
        (_prefetch(gather),),
    )


def _why_not(gather: Gather, stats: Stats | None, *, least_row: int) -> str:
    """Return the reason not to prefetch rows, whatever the size of the operand; "" if there is none."""
    if not gather.operand:
        return "rows of no operand, or of several, are gathered"
    if gather.features is None:
        return f"the length of the rows of {gather.operand} is unknown"
    if gather.row_bytes < least_row:
        return f"a row of {gather.operand} has {gather.row_bytes} bytes; prefetching pays from {least_row}"
    if stats is None:
        return f"without statistics of the data, the size of {gather.operand} is unknown"
    return ""


def megabytes(size: int) -> str:
    """Return a size in bytes as text in MB."""
    return f"{size / 2**20:.3g} MB"


def _prefetch(gather: Gather) -> Step:
    args: dict[str, Arg] = {
        "block": gather.block, "buffer": gather.operand, "loop": gather.loop, "distance": DISTANCE,
    }  # fmt: skip
    return Step("prefetch", args)
