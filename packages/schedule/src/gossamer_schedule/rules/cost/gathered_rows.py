"""Whether vectors are aligned to rows that an iteration gathers, and whether the rows are prefetched."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.cache_line import LINE_BYTES
from gossamer_ir.interchange.records import Arg, Decision, Stats, Step
from gossamer_schedule.rules.recognize.gathers import Gather

LINES_AHEAD = 48
"""Cache lines that are prefetched before they are used: enough work to hide the latency of memory, and few
enough for the buffers of a core that wait for lines."""

LONGEST_DISTANCE = 16
"""Maximum number of nonzeros between the prefetch of a row and its use."""

LEAST_DISTANCE = 2
"""Minimum number of these nonzeros."""

LEAST_ALIGNED = 2
"""Minimum number of feature vectors for aligned loads to pay. One vector more is loaded, but no load crosses
a cache line (measured: 1.1 times faster; NumPy's arrays begin 16 bytes after the start of a line)."""

LARGEST_ALIGNED = 8 << 20
"""Maximum bytes of the operand for aligned loads to pay. Masked loads take longer if they wait for memory
(measured: 0.6 to 0.9 times as fast with 21 MB and more)."""


def aligned_to_rows(
    gather: Gather, lanes: int, stats: Stats | None, *, most: int | None = None
) -> Decision:
    """Decide whether vectors begin at aligned addresses of the gathered rows.

    Rows of whole vectors all have the same alignment. They have at most so many vectors (None: any number).
    """
    vectors, rest = divmod(gather.features or 0, lanes)
    size = gather.operand_bytes(stats)
    if not gather.operand or rest or vectors < LEAST_ALIGNED or (most and vectors > most):
        why = "gathered rows are not a few whole vectors, which would all have the same alignment"
        return Decision("vectors begin at the first feature", why)
    if size > LARGEST_ALIGNED:
        why = (
            f"{gather.operand} has {megabytes(size)}, and masked loads take longer above "
            f"{megabytes(LARGEST_ALIGNED)}"
        )
        return Decision("vectors begin at the first feature", why)
    args: dict[str, Arg] = {"loop": gather.feature, "buffer": gather.operand, "lanes": lanes}
    return Decision(
        f"vectors begin at aligned addresses of {gather.operand}",
        "one vector more is loaded, and no load crosses a cache line",
        (Step("align", args),),
    )


class PrefetchThresholds(NamedTuple):
    """Minimum bytes of a row and of the whole operand for prefetching."""

    least_row: int
    least_operand: int


def prefetched(
    gather: Gather, stats: Stats | None, prefetch: PrefetchThresholds, *, tiles: int = 1
) -> Decision:
    """Return the decision whether rows are prefetched: if a row and the operand, which has a row for each
    column of the matrix, are large enough. The loop over nonzeros reads one of so many tiles of a row."""
    size = gather.operand_bytes(stats)
    least_row, least_operand = prefetch
    why_not = _why_not(gather, stats, least_row=least_row)
    if not why_not and size < least_operand:
        why_not = f"{gather.operand} has {megabytes(size)}; prefetching pays from {megabytes(least_operand)}"
    if why_not:
        return Decision("no prefetching", why_not)
    lines = max(1, gather.row_bytes // tiles // LINE_BYTES)
    distance = max(LEAST_DISTANCE, min(LONGEST_DISTANCE, LINES_AHEAD // lines))
    return Decision(
        f"rows of {gather.operand} prefetched {distance} elements ahead",
        f"a row has {gather.row_bytes} bytes (prefetching pays from {least_row}), and {gather.operand} has "
        f"{megabytes(size)} (prefetching pays from {megabytes(least_operand)})",
        (_prefetch(gather, distance),),
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


def _prefetch(gather: Gather, distance: int) -> Step:
    args: dict[str, Arg] = {
        "block": gather.block, "buffer": gather.operand, "loop": gather.loop, "distance": distance,
    }  # fmt: skip
    return Step("prefetch", args)
