"""Partial sums of a row that run side by side, with the dense operand packed or vectors aligned to its
rows if that pays."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.machine.partial_sums import MIN_TERMS
from gossamer_ir.nodes import Function, Iteration
from gossamer_ir.support.counted import counted
from gossamer_schedule.definition.made_names import (
    cache_name,
    copy_block_name,
    partial_name,
    unit_loop_name,
)
from gossamer_schedule.rules.analysis.outputs import has_rows_and_init, may_reassociate
from gossamer_schedule.rules.analysis.taken_names import has_taken, partial_names
from gossamer_schedule.rules.decisions.packed_operands import may_pack, pack_operand
from gossamer_schedule.rules.decisions.row_gathers import align_to_rows
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.profitability.partial_sums import PartialSums
from gossamer_schedule.rules.steps.register_tiles import (
    TileNest,
    combine_in_registers,
    partial_tile,
)
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


def may_add_side_by_side(function: Function, iteration: Iteration, pattern: RowReduction) -> bool:
    """Return whether the terms of a row may be added in another order, and the program leaves free the names
    that this makes."""
    if not may_reassociate(iteration) or not has_rows_and_init(function, iteration):
        return False
    cache = cache_name(pattern.output, "local")
    names = {*partial_names(pattern.block, pattern.output), *partial_names(pattern.block, cache)}
    names |= {cache, copy_block_name(pattern.block, cache), unit_loop_name(pattern.row)}
    if has_taken(function, iteration, names=names):
        return False
    block, operand = partial_name(pattern.block), pattern.gather.operand
    return may_pack(function, iteration, block=block, operand=operand)


def add_side_by_side(
    trace: TraceBuilder, pattern: RowReduction, sums: PartialSums, hardware: HardwareParams
) -> str:
    """Add the elements of a row to several sums. Return the block that stores them."""
    vectors = sums.tile.vectors
    if not sums.packing.pays:
        align_to_rows(trace, pattern.gather, sums.aligning, hardware)
    summed = _accumulate_sums(trace, pattern, sums)
    trace.decide(
        f"{sums.number} partial sums of a row in registers",
        f"rows have {MIN_TERMS} elements or more on average, and {counted(vectors, 'vector')} of features: "
        "a chain of multiply-adds for each would wait for its last sum",
    )
    run_tile_in_vectors(trace, summed.nests, what="features in lanes, and partial sums unrolled")
    what = "the dense operand is read where it is"
    operand = pattern.gather.operand
    if sums.packing.pays and operand is not None:
        unit = trace.add_unit_loop(pattern.row)
        pack_operand(trace, summed.partial, sums.tile, operand=operand, loop=unit, dimensions=2)
        what = f"{operand} packed at aligned addresses"
    trace.decide(what, sums.packing.why)
    return summed.stored


class _SummedRow(NamedTuple):
    """The nests over a tile of a row, the block that computes partial sums, and the one that stores the
    result."""

    nests: tuple[TileNest, ...]
    partial: str
    stored: str


def _accumulate_sums(trace: TraceBuilder, pattern: RowReduction, sums: PartialSums) -> _SummedRow:
    """Compute partial sums of a row in a local buffer, and their total, which is aligned as they are."""
    output, copy = pattern.output, None
    if sums.aligning.pays:
        elements = (pattern.row, pattern.feature)
        copy = trace.cache_write(
            pattern.block, buffer=output, scope="local", elements=elements, over_iterators=True
        )
        output = cache_name(output, "local")
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
    trace.add("reverse_compute_at", block=copy.block, loop=pattern.row)
    stored = trace.split_in_vectors(copy.loop(pattern.feature), sums.tile.of_one_tile)
    return _SummedRow((*nests.all, TileNest(None, stored)), partial.block, copy.block)
