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
from gossamer_ir.machine.partial_sums import summed_vectors
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.profitability.packing import row_packing
from gossamer_schedule.rules.profitability.register_tiles import IN_FLIGHT
from gossamer_schedule.rules.profitability.verdict import Verdict
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

MAX_SUMS = 4
"""Maximum number of partial sums of a row: more leave more elements over (measured: 4 are 1.0 to 1.1 times as
fast as 2 on rows of 26 to 100 elements)."""


class PartialSums(NamedTuple):
    """The number of partial sums of a row, each of one tile of all features; and whether the operand is
    packed."""

    number: int
    tile: VectorTiles
    packing: Verdict


def partial_sums(
    gather: Gather, hardware: HardwareParams, stats: Stats | None
) -> PartialSums | None:
    """Return the partial sums of a row of whole vectors; None if they do not pay."""
    packing = row_packing(gather, hardware, stats)
    if stats is None:
        return None
    features, dtype = gather.features or 0, gather.dtype
    vectors = summed_vectors(features, dtype, hardware, stats, is_packed=packing.pays)
    if vectors is None:
        return None
    tile = VectorTiles(1, vectors, hardware.lanes(dtype), is_exact=True)
    return PartialSums(min(MAX_SUMS, IN_FLIGHT // vectors), tile, packing)
