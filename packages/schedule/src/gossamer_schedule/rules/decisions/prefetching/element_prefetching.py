"""Prefetching of the elements of later rows, which are stored one after the other.

A prefetcher of the processor follows the elements, too, but within a page, and only as fast as rows ask for
them. The prefetched elements may belong to any later row: where a row ends does not matter, nor where the
array ends, since a prefetch never faults.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.fiber_elements import FiberElements
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_support.message_texts import readable_size

MIN_PREFETCHED_CACHES = 3
"""Minimum size of the elements, as a multiple of the private cache. (Measured in SpMV on Emerald Rapids,
CPU time on one thread and on two, times as fast as without: 0.8 to 0.95 with up to 3.6 MB, where prefetches
take the place of loads, and 0.9 with 6.5 MB; 1.0 to 1.3 with 9 to 14 MB, 1.0 to 1.3 with 24 to 48 MB.)"""

AHEAD = 256
"""Number of elements from one to that which is prefetched (measured as above with 24 MB and more: 1.1 to 1.2
with 128, 1.02 to 1.3 with 256 and with 512)."""


def element_prefetching_verdict(
    stored: FiberElements, machine: Machine, *, stats: Stats | None
) -> Verdict:
    """Decide whether the elements of later rows are prefetched."""
    if machine.gathers != "fast":
        return unprofitable_verdict("it was measured where gathers are fast only")
    if stats is None or not stored.arrays:
        return unprofitable_verdict("the number of elements that follow each other is unknown")
    size, least = stored.all_bytes(stats), MIN_PREFETCHED_CACHES * machine.private_cache
    if size < least:
        return unprofitable_verdict(
            f"the elements have {readable_size(size)}; prefetching pays from {readable_size(least)}"
        )
    return profitable_verdict(
        f"the elements have {readable_size(size)} (prefetching pays from {readable_size(least)}), and the "
        "processor's own prefetches end with a page"
    )


def prefetch_elements(
    trace: TraceBuilder, pattern: RowReduction, *, loop_name: str, lanes: int, why: str
) -> None:
    """Prefetch the elements `AHEAD` of those that each iteration of a loop over vectors of lanes reads."""
    distance = max(1, AHEAD // lanes)
    for array in pattern.stored.arrays:
        trace.record.prefetch(block=pattern.block, buffer=array, loop=loop_name, distance=distance)
    arrays = " and ".join(pattern.stored.arrays)
    trace.decide(f"elements of {arrays} prefetched {distance * lanes} ahead, across rows", why)
