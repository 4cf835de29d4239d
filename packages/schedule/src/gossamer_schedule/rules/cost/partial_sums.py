"""Partial sums of a row that are computed side by side.

A multiply-add takes four cycles, and two begin in each. A row with one or two vectors of features is as many
chains of multiply-adds, which leave the units idle. Several elements of the row at a time, each with sums of
its own, fill them. Then loads are the limit, and one that crosses a cache line takes twice as long, so that
the operand is packed if that pays.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.cost.packing import row_packing
from gossamer_schedule.rules.cost.register_tiles import IN_FLIGHT
from gossamer_schedule.rules.cost.verdict import Verdict
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

MAX_SUMS = 4
"""Maximum number of partial sums of a row: more leave more elements over (measured: 4 are 1.0 to 1.1 times as
fast as 2 on rows of 26 to 100 elements)."""

MIN_TERMS = 16
"""Minimum mean number of elements of a row for partial sums to pay (measured: 1.1 to 1.4 times faster from 26
elements up, 0.75 to 0.95 at 7 elements and fewer, where the elements left over are mispredicted)."""

MAX_SUMMED_VECTORS = 2
"""Maximum number of vectors of features (measured with a packed operand: 1.3 to 2.4 times faster for one
vector, 1.15 to 1.6 for two, 0.9 to 1.2 for four)."""


class PartialSums(NamedTuple):
    """The number of partial sums of a row, each of one tile of all features; and whether the operand is
    packed."""

    number: int
    tile: VectorTiles
    packing: Verdict


def partial_sums(
    gather: Gather, hardware: HardwareParams, stats: Stats | None
) -> PartialSums | None:
    """Return the partial sums of a row of whole vectors; None if they do not pay.

    Two vectors keep the units half busy, so that without packing partial sums gain nothing.
    """
    lanes = hardware.lanes(gather.dtype)
    vectors, rest = divmod(gather.features or 0, lanes)
    packing = row_packing(gather, hardware, stats)
    most = MAX_SUMMED_VECTORS if packing.pays else 1
    if stats is None or stats.mean_row < MIN_TERMS or rest or not 1 <= vectors <= most:
        return None
    tile = VectorTiles(1, vectors, lanes, is_exact=True)
    return PartialSums(min(MAX_SUMS, IN_FLIGHT // vectors), tile, packing)
