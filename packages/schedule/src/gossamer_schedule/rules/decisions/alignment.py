"""Vectors that begin at aligned addresses of the rows of a dense operand that a loop gathers."""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats
from gossamer_ir.support.message_texts import readable_size
from gossamer_machine.cache_line import LINE_BYTES
from gossamer_machine.machine import Machine
from gossamer_machine.sizing.operand_copies import is_used_often
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.decisions.verdict import Verdict, pays, pays_not
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

MIN_ALIGNED = 2
"""Minimum number of feature vectors for aligned loads to pay. One vector more is loaded, but no load crosses
a cache line (measured: 1.1 times faster; NumPy's arrays begin 16 bytes after the start of a line)."""

ALIGNED_PART = 4
"""Aligned loads pay for an operand of at most a quarter of the shared cache, or the whole cache if its rows
are used often. Masked loads take longer if they wait for memory (measured: 0.6 to 0.9 times as fast on graphs
with 21 MB and more)."""


def least_of_sums(machine: Machine) -> int:
    """Return the minimum number of feature vectors for aligned loads to pay in sums of gathered rows.

    A vector that fills a line crosses one wherever the array begins, except at a line, so that one is enough
    (measured on Emerald Rapids: 1.05 to 1.25 times faster on rows of 4 elements, 1.25 to 1.4 on rows of 30
    and 80; products of gathered rows, as in SDDMM, 0.9 to 1.0).
    """
    return 1 if machine.vector_bits == LINE_BYTES * 8 else MIN_ALIGNED


def row_alignment_verdict(
    gather: Gather,
    machine: Machine,
    *,
    stats: Stats | None,
    least: int = MIN_ALIGNED,
    most: int | None = None,
) -> Verdict:
    """Decide whether vectors begin at aligned addresses of the gathered rows.

    Rows of whole vectors all have the same alignment. They have from `least` to `most` vectors (None: any
    number).
    """
    lanes = machine.lanes(gather.dtype)
    vectors, rest = divmod(gather.features or 0, lanes)
    size = gather.operand_bytes(stats)
    if not gather.operand or rest or vectors < least or (most and vectors > most):
        return pays_not(
            "gathered rows are not a few whole vectors, which would all have the same alignment"
        )
    is_in_cache = stats is not None and is_used_often(stats)
    largest = machine.shared_cache // (1 if is_in_cache else ALIGNED_PART)
    if size > largest:
        return pays_not(
            f"{gather.operand} has {readable_size(size)}, and masked loads take longer above "
            f"{readable_size(largest)}"
        )
    return pays("one vector more is loaded, and no load crosses a cache line")


def align_to_rows(
    trace: TraceBuilder, gather: Gather, *, aligning: Verdict, machine: Machine
) -> None:
    """Let vectors begin at aligned addresses of the gathered rows, if that pays."""
    what = "vectors begin at the first feature"
    if aligning.pays and gather.feature and gather.operand:
        lanes = machine.lanes(gather.dtype)
        trace.record.align(gather.feature, buffer=gather.operand, lanes=lanes)
        what = f"vectors begin at aligned addresses of {gather.operand}"
    trace.decide(what, aligning.why)
