"""Prefetching of the rows of a dense operand that a loop gathers."""

from __future__ import annotations

from gossamer_heuristics.gathered_rows import PrefetchThresholds
from gossamer_ir.interchange.records import Stats
from gossamer_machine.cache_line import LINE_BYTES
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    chosen_verdict,
    profitable_verdict,
    unknown_size_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_support.message_texts import readable_size

LINES_AHEAD = 48
"""Cache lines that are prefetched before they are used: enough work to hide the latency of memory, and few
enough for the buffers of a core that wait for lines."""

MAX_DISTANCE = 16
"""Maximum number of nonzeros between the prefetch of a row and its use."""

MIN_DISTANCE = 2
"""Minimum number of these nonzeros."""


def row_prefetching_verdict(
    gather: Gather,
    machine: Machine,
    *,
    stats: Stats | None,
    thresholds: PrefetchThresholds,
    is_aligned: bool,
) -> Verdict:
    """Decide whether rows are prefetched: if a row and the operand, which has a row for each column of the
    matrix, are large enough.

    Vectors are aligned to rows of an operand that stays in the shared cache, where the processor's own
    prefetches do (measured with others: 0.8 to 1.05 times as fast in sparse times dense, 0.8 to 1.0 in
    SDDMM)."""
    operand, row, min_row = gather.operand, gather.row_bytes, thresholds.min_row
    # Known to stay there: without statistics, vectors are aligned whatever the size of the operand is.
    if is_aligned and stats is not None and not thresholds.has_alignment:
        return unprofitable_verdict(
            f"{operand} stays in the shared cache, and prefetches would only add instructions"
        )
    if not operand:
        return unprofitable_verdict("there is not exactly one operand whose rows are gathered")
    if gather.features is None:
        return unprofitable_verdict(f"the length of the rows of {operand} is unknown")
    if row < min_row:
        return unprofitable_verdict(
            f"a row of {operand} has {row} bytes; prefetching pays from {min_row}"
        )
    if stats is None:
        return unknown_size_verdict(operand)
    size, least = gather.operand_bytes(stats), thresholds.operand_bytes(machine)
    if size < least:
        return unprofitable_verdict(
            f"{operand} has {readable_size(size)}; prefetching pays from {readable_size(least)}"
        )
    return profitable_verdict(
        f"a row has {row} bytes (prefetching pays from {min_row}), and "
        f"{operand} has {readable_size(size)} (prefetching pays from {readable_size(least)})"
    )


def prefetch_distance(gather: Gather, *, tiles: int) -> int:
    """Return the number of nonzeros between the prefetch of a row and its use. The loop over nonzeros reads
    one of the `tiles` of a row."""
    lines = max(1, gather.row_bytes // tiles // LINE_BYTES)
    return max(MIN_DISTANCE, min(MAX_DISTANCE, LINES_AHEAD // lines))


def prefetch_rows(
    trace: TraceBuilder, gather: Gather, *, prefetching: Verdict, tiles: int = 1
) -> None:
    """Prefetch rows, if that pays; other distances, and none, are choices. The loop over nonzeros reads one
    of the `tiles` of a row."""
    what, distance = "no prefetching", 0
    if gather.operand and gather.features is not None:
        distance, prefetching = _chosen_distance(
            trace, gather, prefetching=prefetching, ahead=prefetch_distance(gather, tiles=tiles)
        )
    if distance and gather.operand:
        trace.record.prefetch(
            block=gather.block,
            buffer=gather.operand,
            loop=gather.loop,
            distance=distance,
        )
        what = f"rows of {gather.operand} prefetched {distance} elements ahead"
    trace.decide(what, prefetching.why)


def _chosen_distance(
    trace: TraceBuilder, gather: Gather, *, prefetching: Verdict, ahead: int
) -> tuple[int, Verdict]:
    """Return the chosen distance of prefetches, 0 for none, and whether they pay."""
    prior = ahead if prefetching.is_profitable else 0
    distances = (
        (prior, 0, ahead, ahead // 2, 2 * ahead) if prefetching.is_profitable else (prior, ahead)
    )
    distance = trace.choose(f"{gather.block}.prefetch_distance", *distances)
    return distance, chosen_verdict(prefetching, is_prior=distance == prior)
