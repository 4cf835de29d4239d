"""Partial sums of a row that are computed side by side, and the packing of the rows that they gather.

A multiply-add takes four cycles, and two begin in each. A row with one or two vectors of features is as many
chains of multiply-adds, which leave the units idle. Several elements of the row at a time, each with sums of
its own, fill them. Then loads are the limit, and one that crosses a cache line takes twice as long.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_schedule.rules.cost.register_tiles import IN_FLIGHT
from gossamer_schedule.rules.patterns.gathers import Gather

MOST_SUMS = 4
"""Maximum number of partial sums of a row: more leave more elements over (measured: 4 are 1.0 to 1.1 times as
fast as 2 on rows of 26 to 100 elements)."""

LEAST_TERMS = 16
"""Minimum mean number of elements of a row for partial sums to pay (measured: 1.1 to 1.4 times faster from 26
elements up, 0.75 to 0.95 at 7 elements and fewer, where the elements left over are mispredicted)."""

PACKED_VECTORS = 2
"""Maximum number of vectors of a row that is packed (measured: 1.3 to 2.4 times faster for one vector, 1.15
to 1.6 for two, 0.9 to 1.2 for four)."""

LEAST_USES = 16
"""Minimum mean number of times that a packed row is gathered: then packing costs little."""

PACKED_PART = 2
"""Packing pays for an operand of at most half of the private cache, from which the copy is read (measured: as
fast as without if it fills the cache)."""


def partial_sums(vectors: int, stats: Stats | None) -> int:
    """Return the number of partial sums of a row with so many vectors of features.

    >>> long, short = (Stats(rows=10, columns=10, nnz=nnz, longest_row=50, empty_rows=0) for nnz in (200, 60))
    >>> [partial_sums(vectors, long) for vectors in (1, 2, 5)], partial_sums(1, short)
    ([4, 4, 1], 1)
    """
    if stats is None or stats.mean_row < LEAST_TERMS:
        return 1
    return max(1, min(MOST_SUMS, IN_FLIGHT // vectors))


def why_not_packed(gather: Gather, hardware: HardwareParams, stats: Stats | None) -> str:
    """Return the reason not to pack the rows of the operand at aligned addresses; "" if there is none."""
    vectors, rest = divmod(gather.features or 0, hardware.lanes(gather.dtype))
    if not gather.operand or not vectors or rest or vectors > PACKED_VECTORS:
        return f"gathered rows are not of one to {PACKED_VECTORS} whole vectors"
    if stats is None or stats.nnz < LEAST_USES * stats.columns or partial_sums(vectors, stats) == 1:
        return f"a row of {gather.operand} is not known to be gathered {LEAST_USES} times or more"
    if gather.operand_bytes(stats) * PACKED_PART > hardware.private_cache:
        return f"{gather.operand} would not stay in the private cache"
    return ""
