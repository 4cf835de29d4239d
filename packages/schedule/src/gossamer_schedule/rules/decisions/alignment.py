"""Vectors that begin at aligned addresses of the rows of a dense operand that a loop gathers."""

from __future__ import annotations

from gossamer_heuristics.gathered_rows import largest_aligned
from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_support.message_texts import amount, readable_size


def row_alignment_verdict(
    gather: Gather,
    machine: Machine,
    *,
    stats: Stats | None,
    least: int | None,
    most: int | None = None,
) -> Verdict:
    """Decide whether vectors begin at aligned addresses of the gathered rows.

    Rows of whole vectors all have the same alignment. They have from `least` (None: it never pays) to `most`
    vectors (None: any number).
    """
    lanes = machine.lanes(gather.dtype)
    vectors, rest = divmod(gather.features or 0, lanes)
    size = gather.operand_bytes(stats)
    if not gather.operand or rest or not vectors or (most and vectors > most):
        return unprofitable_verdict(
            "gathered rows are not a few whole vectors, which would all have the same alignment"
        )
    if least is None:
        return unprofitable_verdict(
            "this machine has no masked loads for the first vector and the last"
        )
    if vectors < least:
        return unprofitable_verdict(
            f"gathered rows have {amount(vectors, 'vector')}; one more, and masks for two, pay from {least}"
        )
    largest = largest_aligned(machine, stats)
    if size > largest:
        return unprofitable_verdict(
            f"{gather.operand} has {readable_size(size)}, and masked loads take longer above "
            f"{readable_size(largest)}"
        )
    return profitable_verdict("one vector more is loaded, and no load crosses a cache line")


def align_to_rows(
    trace: TraceBuilder, gather: Gather, *, aligning: Verdict, machine: Machine
) -> None:
    """Let vectors begin at aligned addresses of the gathered rows, if that pays."""
    what = "vectors begin at the first feature"
    if aligning.is_profitable and gather.feature and gather.operand:
        lanes = machine.lanes(gather.dtype)
        trace.record.align(gather.feature, buffer=gather.operand, lanes=lanes)
        what = f"vectors begin at aligned addresses of {gather.operand}"
    trace.decide(what, aligning.why)
