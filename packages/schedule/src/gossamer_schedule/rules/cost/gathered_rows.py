"""Whether vectors are aligned to rows that an iteration gathers, and whether the rows are prefetched."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Arg, Decision, Stats, Step
from gossamer_ir.machine.cache_line import LINE_BYTES
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_schedule.rules.patterns.gathers import Gather

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

ALIGNED_PART = 4
"""Aligned loads pay for an operand of at most a quarter of the shared cache. Masked loads take longer if they
wait for memory (measured: 0.6 to 0.9 times as fast on graphs with 21 MB and more)."""

MANY_USES = 16
"""Minimum mean number of nonzeros per row of the operand for aligned loads to pay up to the whole shared
cache: then most rows are in a cache (measured at 19 to 40 MB: 1.3 to 1.8 times faster with 29 to 60
nonzeros, 0.7 to 0.9 with 2 to 7)."""


def aligned_to_rows(
    gather: Gather, hardware: HardwareParams, stats: Stats | None, *, most: int | None = None
) -> Decision:
    """Decide whether vectors begin at aligned addresses of the gathered rows.

    Rows of whole vectors all have the same alignment. They have at most so many vectors (None: any number).
    """
    lanes = hardware.lanes(gather.dtype)
    vectors, rest = divmod(gather.features or 0, lanes)
    size = gather.operand_bytes(stats)
    if not gather.operand or rest or vectors < LEAST_ALIGNED or (most and vectors > most):
        why = "gathered rows are not a few whole vectors, which would all have the same alignment"
        return Decision("vectors begin at the first feature", why)
    largest = hardware.shared_cache // (1 if _has_many_uses(stats) else ALIGNED_PART)
    if size > largest:
        why = (
            f"{gather.operand} has {size_in_words(size)}, and masked loads take longer above "
            f"{size_in_words(largest)}"
        )
        return Decision("vectors begin at the first feature", why)
    args: dict[str, Arg] = {"loop": gather.feature, "buffer": gather.operand, "lanes": lanes}
    return Decision(
        f"vectors begin at aligned addresses of {gather.operand}",
        "one vector more is loaded, and no load crosses a cache line",
        (Step("align", args),),
    )


def _has_many_uses(stats: Stats | None) -> bool:
    """Return whether the rows of the operand, one for each column of the matrix, are gathered often."""
    return stats is not None and stats.nnz >= MANY_USES * stats.columns


class PrefetchThresholds(NamedTuple):
    """When prefetching pays: the minimum bytes of a row, the minimum size of the operand as a multiple of a
    core's private cache, and whether it pays for rows to which vectors are aligned, too."""

    least_row: int
    least_operand: float
    with_alignment: bool = False

    def operand_bytes(self, hardware: HardwareParams) -> int:
        """Return the minimum bytes of the operand on some hardware."""
        return int(self.least_operand * hardware.private_cache)


def prefetched(
    gather: Gather,
    hardware: HardwareParams,
    stats: Stats | None,
    prefetch: PrefetchThresholds,
    *,
    is_aligned: bool,
    tiles: int = 1,
) -> Decision:
    """Return the decision whether rows are prefetched: if a row and the operand, which has a row for each
    column of the matrix, are large enough. The loop over nonzeros reads one of so many tiles of a row."""
    why_not = why_not_prefetched(gather, hardware, stats, prefetch, is_aligned=is_aligned)
    if why_not:
        return Decision("no prefetching", why_not)
    lines = max(1, gather.row_bytes // tiles // LINE_BYTES)
    distance = max(LEAST_DISTANCE, min(LONGEST_DISTANCE, LINES_AHEAD // lines))
    size, least = gather.operand_bytes(stats), prefetch.operand_bytes(hardware)
    return Decision(
        f"rows of {gather.operand} prefetched {distance} elements ahead",
        f"a row has {gather.row_bytes} bytes (prefetching pays from {prefetch.least_row}), and "
        f"{gather.operand} has {size_in_words(size)} (prefetching pays from {size_in_words(least)})",
        (_prefetch(gather, distance),),
    )


def why_not_prefetched(
    gather: Gather,
    hardware: HardwareParams,
    stats: Stats | None,
    prefetch: PrefetchThresholds,
    *,
    is_aligned: bool,
) -> str:
    """Return the reason not to prefetch rows; "" if there is none.

    Vectors are aligned to rows of an operand that stays in the shared cache, where the processor's own
    prefetches do (measured with others: 0.8 to 1.05 times as fast in sparse times dense, 0.8 to 1.0 in
    SDDMM)."""
    if is_aligned and stats is not None and not prefetch.with_alignment:
        return f"{gather.operand} stays in the shared cache, and prefetches would only add instructions"
    if not gather.operand:
        return "there is not exactly one operand whose rows are gathered"
    if gather.features is None:
        return f"the length of the rows of {gather.operand} is unknown"
    if gather.row_bytes < prefetch.least_row:
        return (
            f"a row of {gather.operand} has {gather.row_bytes} bytes; prefetching pays from "
            f"{prefetch.least_row}"
        )
    if stats is None:
        return f"without statistics of the data, the size of {gather.operand} is unknown"
    size, least = gather.operand_bytes(stats), prefetch.operand_bytes(hardware)
    if size < least:
        return f"{gather.operand} has {size_in_words(size)}; prefetching pays from {size_in_words(least)}"
    return ""


def _prefetch(gather: Gather, distance: int) -> Step:
    args: dict[str, Arg] = {
        "block": gather.block,
        "buffer": gather.operand,
        "loop": gather.loop,
        "distance": distance,
    }
    return Step("prefetch", args)
