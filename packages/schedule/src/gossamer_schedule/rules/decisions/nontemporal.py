"""Results that are written by non-temporal stores, around the caches."""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_support.message_texts import readable_size

LARGE_DIVISOR = 2
"""Non-temporal stores pay for a result from half of the shared cache. An ordinary store reads the line first,
and the line displaces rows of the dense operand (measured: 1.1 to 1.5 times faster, most on short rows)."""


def nontemporal_verdict(
    output: str, row_bytes: int, *, machine: Machine, stats: Stats | None
) -> Verdict:
    """Decide whether an output is stored around the caches, which has `row_bytes` bytes (0: unknown) for each
    row of the matrix."""
    if machine.is_scalable:
        return unprofitable_verdict("stores of scalable vectors go through the caches")
    if stats is None or not row_bytes:
        return unprofitable_verdict(f"the size of {output} is unknown")
    size, large = stats.rows * row_bytes, machine.shared_cache // LARGE_DIVISOR
    if size < large:
        return unprofitable_verdict(f"{output} stays in the shared cache for its next reader")
    return profitable_verdict(
        f"{output} has {readable_size(size)}, and from {readable_size(large)}, half of the shared "
        "cache, its lines would displace the gathered rows and be evicted before they are read"
    )


def store_results_nontemporal(
    trace: TraceBuilder, output: str, *, nontemporal: Verdict, copy_block: str
) -> None:
    """Let the block that copies to the output store around the caches, if that pays."""
    if nontemporal.is_profitable:
        trace.record.store_nontemporal(block=copy_block, buffer=output)
        trace.decide(f"{output} is stored around the caches", nontemporal.why)
