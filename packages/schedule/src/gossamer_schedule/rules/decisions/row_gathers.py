"""Rows of a dense operand that a loop gathers: vectors that are aligned to them, and their prefetching."""

from __future__ import annotations

from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.profitability.row_gathers import prefetch_distance
from gossamer_schedule.rules.profitability.verdict import Verdict
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


def align_to_rows(
    trace: TraceBuilder, gather: Gather, aligning: Verdict, hardware: HardwareParams
) -> None:
    """Let vectors begin at aligned addresses of the gathered rows, if that pays."""
    what = "vectors begin at the first feature"
    if aligning.pays:
        lanes = hardware.lanes(gather.dtype)
        trace.add("align", loop=gather.feature, buffer=gather.operand, lanes=lanes)
        what = f"vectors begin at aligned addresses of {gather.operand}"
    trace.decide(what, aligning.why)


def prefetch_rows(
    trace: TraceBuilder, gather: Gather, prefetching: Verdict, *, tiles: int = 1
) -> None:
    """Prefetch rows, if that pays. The loop over nonzeros reads one of so many tiles of a row."""
    what = "no prefetching"
    if prefetching.pays:
        distance = prefetch_distance(gather, tiles=tiles)
        trace.add(
            "prefetch",
            block=gather.block,
            buffer=gather.operand,
            loop=gather.loop,
            distance=distance,
        )
        what = f"rows of {gather.operand} prefetched {distance} elements ahead"
    trace.decide(what, prefetching.why)
