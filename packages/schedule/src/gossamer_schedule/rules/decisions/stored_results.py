"""Results that are stored around the caches."""

from __future__ import annotations

from gossamer_schedule.rules.profitability.verdict import Verdict
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


def store_around_caches(
    trace: TraceBuilder, output: str, streaming: Verdict, *, copy_block: str
) -> None:
    """Let the block that copies to the output store around the caches, if that pays."""
    if streaming.pays:
        trace.add("store_nontemporal", block=copy_block, buffer=output)
        trace.decide(f"{output} is stored around the caches", streaming.why)
