"""BSR times dense: the output tile of a panel of rows and a few vectors of features stays in registers.

Within a tile, each column of a block costs one broadcast for each row of the panel and one load for each
vector; each pair of them is one fused multiply-add. Block rows run in parallel, balanced by blocks. Within a
block row the tiles of features are the outer loop, so that the part of the dense operand that a panel reads
is still in the cache for the next panel. The terms of an element are added in the order of the program.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.decisions.block_tile import RegisterTile, best_tile, tile_reason
from gossamer_schedule.rules.decisions.packing import pack_operand, shared_tile_verdict
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.verdict import Verdict
from gossamer_schedule.rules.patterns.block_reduction import BlockReduction, block_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import TileNest, TileNests, accumulate_tile
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorLoops
from gossamer_support.message_texts import amount

UNROLLED_PANELS = 8
"""Maximum number of panels that are unrolled if the last one is partial, so that no row is masked. (Masks of
a partial tile of features are cheaper than another copy of the code.)"""

UNROLLED_FMAS = 64
"""Maximum number of vector multiply-adds of a tile with all columns of a block for these to be unrolled
(measured on Emerald Rapids with 32 features: blocks of 2, 3 and 8 are 1.05, 1.1 and 1.04 times as fast, with
128 features blocks of 2 to 4 are 1.0 to 1.03; those of 8 would be 128 multiply-adds)."""

NARROW_UNROLLED_FMAS = 192
"""The same for vectors of less than 512 bits, whose multiply-adds do less. (Measured on Zen 3 with blocks of
16, tiles of 4 rows by 2 and by 3 vectors: 2 to 4 times as fast as a loop with 20 to 128 features, since the
end of the loop is mispredicted before the elements of the next block have arrived.)"""

WORK_PER_BLOCK_ROW = 1
"""Cost of a block row besides its blocks, in blocks."""

FMAS_PER_VECTOR = 4
"""Multiply-adds in registers that take as long as one vector from memory."""


@schedule_rule(
    pattern=(
        "a sum over dense blocks of the fiber "
        '(`[IO, JO, II, JI, K]`, "SRSRS", in any order; K may be missing)'
    ),
    programs="BSR times a matrix or a vector",
    schedule=(
        "a tile of rows and features in registers; the dense operand is packed for each tile of features if "
        "it is read often"
    ),
    replaces_conversion=True,
)
def block_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a sum over dense blocks; None for any other program."""
    pattern = block_reduction(module)
    # Nothing is computed, so no schedule is better than another.
    if pattern is None or pattern.height == 0 or pattern.features == 0:
        return None
    machine, trace = context.machine, context.new_trace()
    tile = best_tile(pattern, machine)
    packing = shared_tile_verdict(pattern, tile, machine=machine, stats=context.stats)
    loops = _order_loops(trace, pattern, tile=tile, is_packed=packing.is_profitable)
    trace.decide(tile.text, tile_reason(pattern, machine))
    nests = _accumulate_tile(
        trace, pattern, tile=tile, loops=loops, is_packed=packing.is_profitable
    )
    _run_in_vectors(trace, pattern, nests=nests)
    _run_columns(trace, pattern, tile=tile, most=_max_unrolled(machine))
    _run_panels(trace, pattern, tile=tile, loop_name=loops.panel)
    _pack_tiles(trace, pattern, tile=tile, packing=packing, loop_name=loops.features.tile)
    _run_rows_in_parallel(trace, pattern, tile=tile)
    return PatternMatch(pattern.text, trace)


class _BlockLoops(msgspec.Struct, frozen=True):
    """The loops over panels, the rows of a panel, and features; None for a loop that does not exist."""

    panel: str | None
    row: str | None
    features: VectorLoops


def _order_loops(
    trace: TraceBuilder, pattern: BlockReduction, *, tile: RegisterTile, is_packed: bool
) -> _BlockLoops:
    """Order the loops as tile, panel, position, inner position, row, vector, lane, and the block row around
    the tile of features, or inside of it if the operand is packed. Loops of one iteration are not made."""
    features = VectorLoops(pattern.feature, None, None)
    if tile.features.lanes > 1:
        features = trace.split_in_vectors(pattern.feature, tile.features)
    panel, row = _split_rows(trace, pattern, tile=tile)
    around = (features.tile, pattern.row) if is_packed else (pattern.row, features.tile)
    # Rows and vectors of a tile innermost: each element of a block is used for all of them at once.
    inside = (pattern.position, pattern.inner_position, row, features.vector, features.lane)
    trace.reorder(*around, panel, *inside)
    return _BlockLoops(panel, row, features)


def _split_rows(
    trace: TraceBuilder, pattern: BlockReduction, *, tile: RegisterTile
) -> tuple[str | None, str | None]:
    """Return the loop over panels and the loop over the rows of a panel."""
    # One panel: splitting would only add a loop with one iteration.
    if tile.rows == pattern.height:
        return None, pattern.inner_row
    if tile.rows == 1:
        return pattern.inner_row, None
    panel, row = trace.split(pattern.inner_row, factors=(None, tile.rows))
    return panel, row


def _accumulate_tile(
    trace: TraceBuilder,
    pattern: BlockReduction,
    *,
    tile: RegisterTile,
    loops: _BlockLoops,
    is_packed: bool,
) -> TileNests:
    """Accumulate a tile in a local buffer, which is copied row by row."""
    nests = accumulate_tile(
        trace,
        pattern,
        tile.features,
        update=TileNest(loops.row if tile.rows > 1 else None, loops.features),
        holder=loops.panel or (None if is_packed else loops.features.tile) or pattern.row,
        reduction=pattern.position,
        row=pattern.inner_row,
    )
    row, features = nests.copy
    if row and features.lane and not _is_outside(pattern, pattern.inner_row, inner=pattern.feature):
        trace.reorder(row, features.vector, features.lane)
    trace.decide(
        "the tile in registers during the loop over the blocks of its row",
        "elements of a block and of the dense operand are read once per tile, the result is written once",
    )
    return nests


def _is_outside(pattern: BlockReduction, outer: str, *, inner: str | None) -> bool:
    return inner is None or pattern.order.index(outer) < pattern.order.index(inner)


def _run_in_vectors(trace: TraceBuilder, pattern: BlockReduction, *, nests: TileNests) -> None:
    """Vectorize the lanes of a tile, then unroll its vectors and rows."""
    trace.vectorize(*(nest.features.lane for nest in nests.all))
    if nests.update.features.lane:
        trace.decide("features in lanes", f"neighboring features {pattern.feature} are contiguous")
    trace.unroll(*(nest.features.vector for nest in nests.all))
    trace.unroll(*(nest.row for nest in nests.all))
    if nests.update.features.vector or nests.update.row:
        trace.decide(
            "rows and vectors of a tile unrolled", "registers are assigned at compile time"
        )


def _max_unrolled(machine: Machine) -> int:
    """Return the maximum number of multiply-adds of all columns of a block."""
    is_wide = machine.is_scalable or machine.min_vector_bits >= 512
    return UNROLLED_FMAS if is_wide else NARROW_UNROLLED_FMAS


def _run_columns(
    trace: TraceBuilder, pattern: BlockReduction, *, tile: RegisterTile, most: int
) -> None:
    """Decide whether the columns of a block are unrolled: those of at most this many multiply-adds."""
    what, why = "a loop over columns of a block", "their number is unknown"
    if pattern.width is not None:
        fmas = pattern.width * tile.rows * tile.features.vectors
        why = f"{amount(fmas, 'multiply-add')} of vectors for all of them"
        if fmas > most:
            why += f", more than {most}, are too much code"
        else:
            trace.unroll(pattern.inner_position)
            what, why = "columns of a block unrolled", f"there are {why}"
    trace.decide(what, why)


def _run_panels(
    trace: TraceBuilder, pattern: BlockReduction, *, tile: RegisterTile, loop_name: str | None
) -> None:
    """Decide whether the panels of a block row are unrolled."""
    height = pattern.height or tile.rows
    what, why = "a loop over panels of rows", "no panel is partial, or there is only one"
    if height > UNROLLED_PANELS * tile.rows and height % tile.rows:
        why = f"more than {UNROLLED_PANELS} copies are too much code, so rows are masked"
    elif height % tile.rows:
        trace.unroll(loop_name)
        what, why = "panels of rows unrolled", "only the last panel is partial, so no row is masked"
    trace.decide(what, why)


def _pack_tiles(
    trace: TraceBuilder,
    pattern: BlockReduction,
    *,
    tile: RegisterTile,
    packing: Verdict,
    loop_name: str | None,
) -> None:
    """Pack the operand in each iteration of the loop over tiles of features, if that pays."""
    what = "the dense operand is read where it is"
    if packing.is_profitable and pattern.operand is not None and loop_name is not None:
        pack_operand(
            trace,
            pattern.block,
            tiles=tile.features,
            operand=pattern.operand,
            loop_name=loop_name,
            ndim=pattern.operand_ndim,
        )
        what = f"{pattern.operand} packed for each tile of features"
    trace.decide(what, packing.why)


def _run_rows_in_parallel(
    trace: TraceBuilder, pattern: BlockReduction, *, tile: RegisterTile
) -> None:
    # Unknown sizes count as 1, which underestimates the work.
    work = (pattern.height or 1) * (pattern.width or 1) * tile.features.work
    run_rows_in_parallel(
        trace,
        pattern.row,
        before=pattern.before,
        vectors=max(1, work // FMAS_PER_VECTOR),
        per_row=WORK_PER_BLOCK_ROW,
    )
