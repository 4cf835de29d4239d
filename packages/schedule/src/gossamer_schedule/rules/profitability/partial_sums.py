"""Partial sums of a row that are computed side by side.

A multiply-add takes four cycles, and two begin in each. A row with one or two vectors of features is as many
chains of multiply-adds, which leave the units idle. Several elements of the row at a time, each with sums of
its own, fill them. Then loads are the limit, and one that crosses a cache line takes twice as long or longer,
so that the operand is packed if that pays, and otherwise vectors are aligned to its rows.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.machine.partial_sums import MIN_TERMS, summed_vectors
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.profitability.packing import row_packing
from gossamer_schedule.rules.profitability.register_tiles import IN_FLIGHT
from gossamer_schedule.rules.profitability.row_gathers import least_of_sums, row_alignment
from gossamer_schedule.rules.profitability.verdict import Verdict, pays_not
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

MAX_SUMS = 4
"""Maximum number of partial sums of a row: more leave more elements over (measured: 4 are 1.0 to 1.1 times as
fast as 2 on rows of 26 to 100 elements)."""

ALIGNED_SUMS = 2
"""The number of partial sums of aligned vectors. One vector more is added for each element, and 2 sums keep
the units that load busy (measured: 4 are 0.95 to 1.05 times as fast)."""

MAX_ALIGNED_VECTORS = 4
"""Maximum number of aligned vectors, besides the one that alignment adds (measured on Emerald Rapids with
rows of 29 to 80 elements, against one aligned sum: 1.0 to 1.2 times as fast for one and two vectors, 1.0 to
1.1 for four; against unaligned sums, 1.3 to 1.7 for one)."""


class PartialSums(NamedTuple):
    """The number of partial sums of a row, each of one tile of all features; whether the operand is packed,
    and whether vectors are aligned to its rows."""

    number: int
    tile: VectorTiles
    packing: Verdict
    aligning: Verdict


def partial_sums(
    gather: Gather, hardware: HardwareParams, stats: Stats | None
) -> PartialSums | None:
    """Return the partial sums of a row of whole vectors; None if they do not pay."""
    packing = row_packing(gather, hardware, stats)
    if stats is None:
        return None
    features, dtype = gather.features or 0, gather.dtype
    lanes = hardware.lanes(dtype)
    vectors = summed_vectors(features, dtype, hardware, stats, is_packed=packing.pays)
    if packing.pays and vectors is not None:
        aligning = pays_not("the copy begins at a cache line")
        return PartialSums(_sums(vectors), _tile(vectors, lanes), packing, aligning)
    packing = packing if not packing.pays else pays_not("a copy of more vectors gains little")
    aligning = _alignment(gather, hardware, stats)
    if aligning.pays:
        tile = _tile(features // lanes + 1, lanes)
        return PartialSums(ALIGNED_SUMS, tile, packing, aligning)
    if vectors is None:
        return None
    return PartialSums(_sums(vectors), _tile(vectors, lanes), packing, aligning)


def _alignment(gather: Gather, hardware: HardwareParams, stats: Stats) -> Verdict:
    """Decide whether partial sums are of aligned vectors."""
    if stats.mean_row < MIN_TERMS:
        return pays_not(f"rows have fewer than {MIN_TERMS} elements on average")
    most = min(MAX_ALIGNED_VECTORS, hardware.accumulators // ALIGNED_SUMS - 1)
    least = least_of_sums(hardware)
    return row_alignment(gather, hardware, stats, least=least, most=most)


def _sums(vectors: int) -> int:
    """Return the number of sums of so many vectors that keep the units busy."""
    return min(MAX_SUMS, IN_FLIGHT // vectors)


def _tile(vectors: int, lanes: int) -> VectorTiles:
    """Return the one tile of all features."""
    return VectorTiles(1, vectors, lanes, is_exact=True)
