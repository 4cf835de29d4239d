"""Groups of rows times dense: all rows of a group use a row of the dense operand while it is in registers.

The rows of a group are stored in one list of columns, and the groups are in an order in which neighbors have
columns in common (`row_groups`). For each column of a group, a tile of the row of the dense operand is loaded
once, and multiplied by the elements of all rows of the group. Groups run in parallel, balanced by columns.
"""

from __future__ import annotations

from gossamer_heuristics.gathered_rows import PREFETCH
from gossamer_ir.nodes import Module
from gossamer_machine.cache_line import LINE_BYTES
from gossamer_schedule.rules.decisions.alignment import align_to_rows
from gossamer_schedule.rules.decisions.gather_tiling import GatherTiling, gather_tiling
from gossamer_schedule.rules.decisions.nontemporal import (
    nontemporal_verdict,
    store_results_nontemporal,
)
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.prefetching.row_prefetching import prefetch_rows
from gossamer_schedule.rules.decisions.tile_loops import run_tiles
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.decisions.verdict import Verdict, unprofitable_verdict
from gossamer_schedule.rules.patterns.grouped_reduction import GroupedReduction, grouped_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import (
    TileNest,
    TileNests,
    accumulate_tile,
    tile_around,
)
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_support.message_texts import amount, readable_size

MAX_ROWS = 8
"""Maximum number of rows of a group: their accumulators stay in registers with at least two vectors each."""

RESULT_LINES_AHEAD = 16
"""Cache lines of the result between the prefetch of a row and its store (measured on a graph of 170,000 rows:
2 rows of 8 lines, and 8 rows of 2 lines, are 1.2 times as fast as without)."""

MAX_RESULT = 512
"""Maximum bytes of a row of the result that is prefetched. The processor itself finds the later lines of a
row (measured: with 1 KB and 2 KB, prefetching is 1.3 to 1.4 times slower)."""


@schedule_rule(
    pattern=(
        "`out[ROWS[g, r], k] = out[ROWS[g, r], k] op ...` over groups of rows "
        '(`[G, J, R, K]`, "SRSS")'
    ),
    programs="groups of rows in any order (`row_groups`) times a matrix",
    schedule=(
        "a tile of all rows of a group in registers; rows of a large operand are prefetched, and large "
        "results are stored around the caches"
    ),
    replaces_conversion=True,
)
def group_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over the columns of groups of rows; None for any other program."""
    pattern = grouped_reduction(module)
    if pattern is None or pattern.height > MAX_ROWS:
        return None
    trace, gather = context.new_trace(), pattern.gather
    machine, stats = context.machine, context.stats
    # The accumulators of aligned vectors must begin at the identity of the reduction.
    has_cacheable_accumulators = pattern.is_initialized
    tiling = gather_tiling(
        gather,
        machine,
        stats=stats,
        has_cacheable_accumulators=has_cacheable_accumulators,
        rows=pattern.height,
    )
    align_to_rows(trace, gather, aligning=tiling.aligning, machine=machine)
    nests = _accumulate_rows(trace, pattern, tiling=tiling)
    what = "features in lanes, and the rows and vectors of a tile unrolled"
    run_tile_in_vectors(trace, nests.all, what=what)
    run_tiles(
        trace,
        tiling.tiles,
        loop_name=nests.update.features.tile,
        block_name=pattern.block,
        rows=pattern.height,
    )
    stored = _nontemporal_verdict(pattern, context)
    store_results_nontemporal(
        trace, pattern.output, nontemporal=stored, copy_block=nests.copy_block
    )
    prefetch_rows(trace, gather, prefetching=tiling.prefetching, tiles=tiling.tiles.tiles or 1)
    # Lines that are stored around the caches are not read.
    if not stored.is_profitable:
        _prefetch_results(trace, pattern, context=context, copy_block=nests.copy_block)
    vectors = pattern.height * tiling.tiles.work
    run_rows_in_parallel(trace, pattern.group, before=pattern.before, vectors=vectors)
    return PatternMatch(pattern.text, trace)


def _accumulate_rows(
    trace: TraceBuilder, pattern: GroupedReduction, *, tiling: GatherTiling
) -> TileNests:
    """Order the loops as group, tile, column, row, vector, lane, and accumulate a tile of all rows."""
    inner = (pattern.position, pattern.row)
    loops = tile_around(trace, pattern.feature, tiling.tiles, inner=inner)
    trace.decide(
        f"a tile of {amount(pattern.height, 'row')} by {amount(tiling.tiles.vectors, 'vector')} of "
        f"{amount(tiling.tiles.lanes, 'lane')}",
        f"{tiling.limit}; all rows of a group use a row of the dense operand",
    )
    nests = accumulate_tile(
        trace,
        pattern,
        tiling.tiles,
        update=TileNest(pattern.row, loops),
        holder=loops.tile or pattern.group,
        reduction=pattern.position,
        row=pattern.row,
        over_iters=True,
    )
    trace.decide(
        f"the tile in registers during the loop over the columns {pattern.position} of a group",
        "each row of the dense operand is read once for all rows of a group",
    )
    return nests


def _nontemporal_verdict(pattern: GroupedReduction, context: RuleContext) -> Verdict:
    """Decide whether the result is stored around the caches."""
    if not pattern.is_initialized:
        return unprofitable_verdict(f"{pattern.output} is read, which would wait for memory")
    return nontemporal_verdict(
        pattern.output, pattern.gather.row_bytes, machine=context.machine, stats=context.stats
    )


def _prefetch_results(
    trace: TraceBuilder,
    pattern: GroupedReduction,
    *,
    context: RuleContext,
    copy_block: str,
) -> None:
    """Prefetch the row of the result that a later group stores, if that pays."""
    row_bytes, stats = pattern.gather.row_bytes, context.stats
    if stats is None or pattern.height > 1 or row_bytes > MAX_RESULT:
        return
    size, least = stats.rows * row_bytes, PREFETCH.operand_bytes(context.machine)
    if size < least:
        return
    distance = RESULT_LINES_AHEAD // max(1, row_bytes // LINE_BYTES)
    trace.record.prefetch(
        block=copy_block,
        buffer=pattern.output,
        loop=pattern.group,
        distance=distance,
    )
    trace.decide(
        f"rows of {pattern.output} prefetched {amount(distance, 'group')} ahead",
        f"rows are in any order, so that the processor does not find them itself, and {pattern.output} has "
        f"{readable_size(size)} (prefetching pays from {readable_size(least)})",
    )
