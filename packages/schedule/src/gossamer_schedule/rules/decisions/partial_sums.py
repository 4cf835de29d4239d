"""Partial sums of a row that are computed side by side.

A multiply-add takes four cycles, and two begin in each. A row with one or two vectors of features is as many
chains of multiply-adds, which leave the units idle. Several elements of the row at a time, each with sums of
its own, fill them. Then loads are the limit, and one that crosses a cache line takes twice as long or longer,
so that the operand is packed if that pays, and otherwise vectors are aligned to its rows.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from gossamer_heuristics.csr_form import CsrForm
from gossamer_heuristics.gathered_rows import min_aligned_in_sums
from gossamer_heuristics.row_lengths import MIN_TERMS
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Function, Iteration
from gossamer_machine.machine import IN_FLIGHT, Machine
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.analysis.outputs import has_rows_and_init, may_reassociate
from gossamer_schedule.rules.decisions.alignment import align_to_rows, row_alignment_verdict
from gossamer_schedule.rules.decisions.packing import pack_operand, row_packing_verdict
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.decisions.verdict import Verdict, chosen_verdict, unprofitable_verdict
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.register_tiles import (
    TileNest,
    combine_in_registers,
    partial_tile,
)
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles
from gossamer_support.message_texts import amount

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


SumsForm: TypeAlias = Literal["packed_sums", "aligned_sums", "sums"]
"""Sums of rows of a packed dense operand, of vectors that are aligned to its rows, or of neither."""


class PartialSums(msgspec.Struct, frozen=True):
    """The number of partial sums of a row, each of one tile of all features; whether the operand is packed,
    and whether vectors are aligned to its rows."""

    number: int
    tile: VectorTiles
    packing: Verdict
    aligning: Verdict


def sums_form(
    gather: Gather, by_sizes: CsrForm, *, machine: Machine, stats: Stats | None
) -> SumsForm | None:
    """Return the form of the partial sums of a row of whole vectors; None if they do not pay.

    It is the one that sizes select, if that has sums. Rows that are selected where they are may have sums of
    aligned vectors, too, which load as much as one sum does.
    """
    if by_sizes == "packed_sums":
        return by_sizes
    # Before sums that are not aligned: half of their loads would cross a cache line.
    if _alignment_verdict(gather, machine=machine, stats=stats).is_profitable:
        return "aligned_sums"
    return by_sizes if by_sizes == "sums" else None


def partial_sums(
    gather: Gather, form: SumsForm, *, machine: Machine, stats: Stats | None
) -> PartialSums:
    """Return the partial sums of this form, of a row of whole vectors."""
    packing = row_packing_verdict(gather, machine=machine, stats=stats)
    lanes = machine.lanes(gather.dtype)
    vectors = (gather.features or 0) // lanes
    if form == "packed_sums":
        packing = chosen_verdict(packing, is_prior=packing.is_profitable)
        aligning = unprofitable_verdict("the copy begins at a cache line")
        return PartialSums(_sums(vectors), _tile(vectors, lanes), packing, aligning)
    if packing.is_profitable:
        packing = unprofitable_verdict("a copy of more vectors gains little")
    aligning = _alignment_verdict(gather, machine=machine, stats=stats)
    if form == "aligned_sums":
        return PartialSums(ALIGNED_SUMS, _tile(vectors + 1, lanes), packing, aligning)
    if aligning.is_profitable:
        aligning = unprofitable_verdict("unaligned vectors were chosen, which are one fewer")
    return PartialSums(_sums(vectors), _tile(vectors, lanes), packing, aligning)


def _alignment_verdict(gather: Gather, *, machine: Machine, stats: Stats | None) -> Verdict:
    """Decide whether partial sums are of aligned vectors."""
    if stats is None or stats.mean_row < MIN_TERMS:
        return unprofitable_verdict(f"rows have fewer than {MIN_TERMS} elements on average")
    most = min(MAX_ALIGNED_VECTORS, machine.accumulators // ALIGNED_SUMS - 1)
    least = min_aligned_in_sums(machine)
    return row_alignment_verdict(gather, machine, stats=stats, least=least, most=most)


def _sums(vectors: int) -> int:
    """Return the number of sums, each of `vectors` vectors, that keep the units busy."""
    return min(MAX_SUMS, IN_FLIGHT // vectors)


def _tile(vectors: int, lanes: int) -> VectorTiles:
    """Return the one tile of all features."""
    return VectorTiles(1, vectors, lanes, is_exact=True)


def may_have_sums(gather: Gather, machine: Machine) -> bool:
    """Return whether features are whole vectors, of which registers hold several sums."""
    vectors, rest = divmod(gather.features or 0, machine.lanes(gather.dtype))
    return not rest and 1 <= vectors <= min(MAX_ALIGNED_VECTORS, machine.accumulators // 2)


def numbers_of_sums(sums: PartialSums, machine: Machine) -> tuple[int, ...]:
    """Return the numbers of partial sums that registers hold: choices besides the one that the rule takes."""
    return tuple(
        number for number in (2, 4, 8) if number * sums.tile.vectors <= machine.accumulators
    )


def may_add_side_by_side(function: Function, iteration: Iteration) -> bool:
    """Return whether the terms of a row may be added in another order."""
    return may_reassociate(iteration) and has_rows_and_init(function, iteration)


def add_side_by_side(
    trace: TraceBuilder,
    pattern: RowReduction,
    *,
    sums: PartialSums,
    machine: Machine,
    stats: Stats | None,
) -> str:
    """Add the elements of a row to several sums. Return the block that stores them."""
    rows = "it was chosen, although rows may have few elements"
    if stats is not None and stats.mean_row >= MIN_TERMS:
        rows = f"rows have {MIN_TERMS} elements or more on average"
    vectors = sums.tile.vectors
    if not sums.packing.is_profitable:
        align_to_rows(trace, pattern.gather, aligning=sums.aligning, machine=machine)
    summed = _accumulate_sums(trace, pattern, sums=sums)
    trace.decide(
        f"{sums.number} partial sums of a row in registers",
        f"{rows}, and {amount(vectors, 'vector')} of features: a chain of multiply-adds for each would "
        "wait for its last sum",
    )
    run_tile_in_vectors(trace, summed.nests, what="features in lanes, and partial sums unrolled")
    what = "the dense operand is read where it is"
    operand = pattern.gather.operand
    if sums.packing.is_profitable and operand is not None:
        unit = trace.add_unit_loop(pattern.row)
        pack_operand(
            trace, summed.partial, tiles=sums.tile, operand=operand, loop_name=unit, ndim=2
        )
        what = f"{operand} packed at aligned addresses"
    trace.decide(what, sums.packing.why)
    return summed.stored


class _SummedRow(msgspec.Struct, frozen=True):
    """The nests over a tile of a row, the block that computes partial sums, and the one that stores the
    result."""

    nests: tuple[TileNest, ...]
    partial: str
    stored: str


def _accumulate_sums(
    trace: TraceBuilder, pattern: RowReduction, *, sums: PartialSums
) -> _SummedRow:
    """Compute partial sums of a row in a local buffer, and their total, which is aligned as they are."""
    output, copy = pattern.output, None
    if sums.aligning.is_profitable:
        elements = (pattern.row, pattern.feature)
        copy = trace.cache_write(
            pattern.block, buffer=output, scope="local", elements=elements, over_iters=True
        )
        output = copy.buffer
    group, part = trace.split(pattern.position, factors=(None, sums.number))
    features = trace.split_in_vectors(pattern.feature, sums.tile)
    partial = trace.rfactor(
        pattern.block,
        buffer=output,
        loop=part,
        elements=(pattern.row, pattern.feature),
    )
    trace.reorder(group, part, features.vector, features.lane)
    combine_in_registers(trace, pattern, partial, holder=pattern.row)
    update = TileNest(part, features)
    nests = partial_tile(trace, pattern, sums.tile, partial=partial, update=update, reduction=group)
    # The sums of a vector one after the other, so that their total stays in a register.
    total = nests.copy.features
    trace.reorder(total.vector, nests.copy.row, total.lane)
    if copy is None:
        return _SummedRow(nests.all, partial.block, pattern.block)
    trace.record.reverse_compute_at(block=copy.block, loop=pattern.row)
    stored = trace.split_in_vectors(copy.loop(pattern.feature), sums.tile.single_tile)
    return _SummedRow((*nests.all, TileNest(None, stored)), partial.block, copy.block)
