"""BSR times dense: the output tile of a panel of rows and a few vectors of features stays in registers.

Within a tile, each column of a block costs one broadcast for each row of the panel and one load for each
vector; each pair of them is one fused multiply-add. Block rows run in parallel, balanced by blocks. Within a
block row the tiles of features are the outer loop, so that the part of the dense operand that a panel reads
is still in the cache for the next panel. The terms of an element are added in the order of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gossamer_ir.interchange.records import Decision, Target
from gossamer_ir.machine.hardware_params import hardware_params
from gossamer_ir.nodes import Module
from gossamer_ir.support.counted import counted
from gossamer_schedule.definition.made_names import cache_name, copy_block_name
from gossamer_schedule.rules.cost.packed_panels import why_not_packed
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.cost.register_tiles import Tile, best_tile, tile_reason
from gossamer_schedule.rules.cost.thread_work import grain
from gossamer_schedule.rules.patterns.block_reduction import BlockReduction, block_reduction
from gossamer_schedule.rules.patterns.row_reduction import (
    has_taken,
    is_clashing,
    names_used,
    single_iteration,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import AccumulatorLoops, TraceBuilder, VectorLoops

UNROLLED_PANELS = 8
"""Maximum number of panels that are unrolled if the last one is partial, so that no row is masked. (Masks of
a partial tile of features are cheaper than another copy of the code.)"""

WORK_PER_ROW = 1
"""Cost of a block row besides its blocks, in blocks."""

_PACKED_SCOPE = "global"

FMAS_PER_VECTOR = 4
"""Multiply-adds in registers that take as long as one vector from memory."""


class _Loops(NamedTuple):
    """The loops over panels, the rows of a panel, and features; "" for a loop that does not exist."""

    panel: str
    row: str
    features: VectorLoops


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
def block_spmm(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a sum over dense blocks; None for any other program."""
    pattern = block_reduction(module)
    # Nothing is computed, so no schedule is better than another.
    if pattern is None or pattern.height == 0 or pattern.features == 0:
        return None
    hardware = hardware_params(target)
    tile = best_tile(pattern, hardware)
    why_not = why_not_packed(pattern, tile, _tiles(pattern, tile), hardware, context.stats)
    if not why_not and _has_taken_names(module, pattern):
        why_not = "the program uses a name of the copy"
    ordering = TraceBuilder()
    loops = _ordered(ordering, pattern, tile, in_panels=not why_not)
    accumulating = TraceBuilder()
    accumulators = _in_registers(accumulating, pattern, tile, loops, in_panels=not why_not)
    decisions = (
        Decision(_tile_text(tile), tile_reason(pattern, hardware), ordering.steps),
        Decision(
            "the tile in registers during the loop over the blocks of its row",
            "elements of a block and of the dense operand are read once per tile, the result is written once",
            accumulating.steps,
        ),
        *_in_code(pattern, tile, loops, accumulators),
        _panels(pattern, tile, loops),
        _packed(pattern, tile, loops, why_not),
        _parallel(pattern, tile),
    )
    return PatternMatch(pattern.text, decisions)


def _tile_text(tile: Tile) -> str:
    rows = counted(tile.rows, "row")
    if tile.lanes == 1:
        return f"a tile of {rows}"
    return f"a tile of {rows} by {counted(tile.vectors, 'vector')} of {tile.lanes} lanes"


def _in_code(
    pattern: BlockReduction, tile: Tile, loops: _Loops, accumulators: AccumulatorLoops
) -> Iterator[Decision]:
    """Vectorize the lanes of a tile, then unroll its vectors and rows."""
    vectorizing, unrolling = TraceBuilder(), TraceBuilder()
    nests = _vectorized(vectorizing, pattern, tile, loops=loops.features, accumulators=accumulators)
    if vectorizing.steps:
        why = f"neighboring features {pattern.feature} are contiguous"
        yield Decision("features in lanes", why, vectorizing.steps)
    if loops.features.vector:
        for nest in nests:
            unrolling.add("unroll", loop=nest.vector)
    if loops.row and tile.rows > 1:
        for loop in (loops.row, accumulators.init[loops.row], accumulators.copy[pattern.inner_row]):
            unrolling.add("unroll", loop=loop)
    if unrolling.steps:
        why = "registers are assigned at compile time"
        yield Decision("rows and vectors of a tile unrolled", why, unrolling.steps)


def _panels(pattern: BlockReduction, tile: Tile, loops: _Loops) -> Decision:
    """Decide whether the panels of a block row are unrolled."""
    height = pattern.height or tile.rows
    if height % tile.rows == 0:
        return Decision("a loop over panels of rows", "no panel is partial, or there is only one")
    if height > UNROLLED_PANELS * tile.rows:
        why = f"more than {UNROLLED_PANELS} copies are too much code, so rows are masked"
        return Decision("a loop over panels of rows", why)
    trace = TraceBuilder()
    trace.add("unroll", loop=loops.panel)
    why = "only the last panel is partial, so no row is masked"
    return Decision("panels of rows unrolled", why, trace.steps)


def _packed(pattern: BlockReduction, tile: Tile, loops: _Loops, why_not: str) -> Decision:
    """Decide whether the operand is packed for each tile of features."""
    if why_not:
        return Decision("the dense operand is read where it is", why_not)
    trace = TraceBuilder()
    *rows, feature = trace.cache_region(
        pattern.block,
        buffer=pattern.operand,
        loop=loops.features.tile,
        scope=_PACKED_SCOPE,
        dimensions=pattern.operand_rank,
    ).loops
    features = trace.split_in_vectors(
        feature, tiles=1, vectors=tile.vectors, lanes=tile.lanes, exact=False
    )
    trace.add("vectorize", loop=features.lane)
    if features.vector:
        trace.add("unroll", loop=features.vector)
    trace.add("parallel", loop=rows[0], grain=grain(tile.vectors))
    return Decision(
        f"{pattern.operand} packed for each tile of features",
        "a tile of all its rows stays in the private cache while all blocks read it, and no load of the copy "
        "crosses a cache line",
        trace.steps,
    )


def _has_taken_names(module: Module, pattern: BlockReduction) -> bool:
    """Return whether the program uses one of the names that packing would make."""
    program = single_iteration(module)
    assert program is not None, "the pattern is that of a single iteration"
    packed = cache_name(pattern.operand, _PACKED_SCOPE)
    names = {packed, copy_block_name(pattern.block, packed)}
    return has_taken(*program, names=names) or is_clashing(names_used(*program), [pattern.operand])


def _tiles(pattern: BlockReduction, tile: Tile) -> int | None:
    """Return the number of tiles that hold all features, None if that is symbolic."""
    if pattern.features is None:
        return None
    return -(-pattern.features // (tile.vectors * tile.lanes))


def _ordered(
    trace: TraceBuilder, pattern: BlockReduction, tile: Tile, *, in_panels: bool
) -> _Loops:
    """Order the loops as tile, panel, position, inner position, row, vector, lane, and the block row around
    the tile of features, or inside of it if the operand is packed. Loops of one iteration are not made."""
    features = _feature_loops(trace, pattern, tile)
    panel, row = _row_loops(trace, pattern, tile)
    around = (features.tile, pattern.row) if in_panels else (pattern.row, features.tile)
    outside = (*around, panel)
    # Rows and vectors of a tile innermost: each element of a block is used for all of them at once.
    inside = (pattern.position, pattern.inner_position, row, features.vector, features.lane)
    trace.add("reorder", loops=tuple(loop for loop in (*outside, *inside) if loop))
    return _Loops(panel, row, features)


def _feature_loops(trace: TraceBuilder, pattern: BlockReduction, tile: Tile) -> VectorLoops:
    if tile.lanes == 1:
        return VectorLoops(pattern.feature, "", "")
    return trace.split_in_vectors(
        pattern.feature,
        tiles=_tiles(pattern, tile),
        vectors=tile.vectors,
        lanes=tile.lanes,
        exact=pattern.features == tile.lanes,
    )


def _row_loops(trace: TraceBuilder, pattern: BlockReduction, tile: Tile) -> tuple[str, str]:
    """Return the loop over panels and the loop over the rows of a panel."""
    # One panel: splitting would only add a loop with one iteration.
    if tile.rows == pattern.height:
        return "", pattern.inner_row
    if tile.rows == 1:
        return pattern.inner_row, ""
    panel, row = trace.split(pattern.inner_row, factors=(None, tile.rows))
    return panel, row


def _in_registers(
    trace: TraceBuilder, pattern: BlockReduction, tile: Tile, loops: _Loops, *, in_panels: bool
) -> AccumulatorLoops:
    """Accumulate a tile in a local buffer, which is copied row by row."""
    vector, lane = loops.features.vector, loops.features.lane
    elements = tuple(loop for loop in (pattern.inner_row, pattern.feature) if loop)
    accumulators = trace.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=loops.panel or ("" if in_panels else loops.features.tile) or pattern.row,
        reduction=pattern.position,
        inside=[loop for loop in (loops.row, vector, lane) if loop],
        elements=elements,
    )
    if lane and tile.rows > 1 and elements != tuple(sorted(elements, key=pattern.order.index)):
        trace.add("reorder", loops=tuple(accumulators.copy[loop] for loop in elements))
    return accumulators


def _vectorized(
    trace: TraceBuilder,
    pattern: BlockReduction,
    tile: Tile,
    *,
    loops: VectorLoops,
    accumulators: AccumulatorLoops,
) -> tuple[VectorLoops, ...]:
    """Vectorize the lanes of the block, of its init and of its copy. Return the loops of the three."""
    if not loops.lane:
        return ()
    copy = trace.split_in_vectors(
        accumulators.copy[pattern.feature],
        tiles=1,
        vectors=tile.vectors,
        lanes=tile.lanes,
        exact=loops.lane == pattern.feature,
    )
    nests = (loops, accumulators.init_of(loops), copy)
    for nest in nests:
        trace.add("vectorize", loop=nest.lane)
    return nests


def _parallel(pattern: BlockReduction, tile: Tile) -> Decision:
    vectors = tile.vectors * (_tiles(pattern, tile) or 1)
    # Unknown sizes count as 1, which underestimates the work.
    work = (pattern.height or 1) * (pattern.width or 1) * vectors
    return parallel_rows(
        pattern.row,
        before=pattern.before,
        per_row=WORK_PER_ROW,
        vectors=max(1, work // FMAS_PER_VECTOR),
    )
