"""Groups of rows times dense: all rows of a group use a row of the dense operand while it is in registers.

The rows of a group are stored in one list of columns, and the groups are in an order in which neighbors have
columns in common (`row_groups`). For each column of a group, a tile of the row of the dense operand is loaded
once, and multiplied by the elements of all rows of the group. Groups run in parallel, balanced by columns.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Arg, Decision, Stats, Step, Target
from gossamer_ir.machine.cache_line import LINE_BYTES
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Module
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_ir.support.counted import counted
from gossamer_schedule.rules.cost.feature_tiles import (
    PREFETCH,
    WORK_PER_ROW,
    Result,
    alignment,
    around_caches,
    several_tiles,
)
from gossamer_schedule.rules.cost.gathered_rows import prefetched, why_not_prefetched
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.cost.vector_tiles import Tiling, tiling_of
from gossamer_schedule.rules.patterns.grouped_reduction import (
    GroupedReduction,
    grouped_reduction,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import AccumulatorLoops, TraceBuilder, VectorLoops

MOST_ROWS = 8
"""Maximum number of rows of a group: their accumulators stay in registers with at least two vectors each."""

RESULT_LINES_AHEAD = 16
"""Cache lines of the result between the prefetch of a row and its store (measured on a graph of 170,000 rows:
2 rows of 8 lines, and 8 rows of 2 lines, are 1.2 times as fast as without)."""

LONGEST_RESULT = 512
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
def group_spmm(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over the columns of groups of rows; None for any other program."""
    pattern = grouped_reduction(module)
    if pattern is None or pattern.height > MOST_ROWS:
        return None
    hardware, stats = hardware_params(target), context.stats
    # The accumulators of aligned vectors must begin at the identity of the reduction.
    aligning = alignment(pattern.gather, hardware, stats, has_rows=pattern.is_initialized)
    is_aligned = bool(aligning.steps)
    why_not = why_not_prefetched(pattern.gather, hardware, stats, PREFETCH, is_aligned=is_aligned)
    tiling = tiling_of(
        pattern.features,
        pattern.dtype,
        hardware,
        is_aligned=is_aligned,
        is_prefetched=not why_not,
        rows=pattern.height,
    )
    result = Result(pattern.output, pattern.features, pattern.dtype)
    ordering, summing = TraceBuilder(), TraceBuilder()
    loops = _ordered(ordering, pattern, tiling)
    accumulators, copy = _in_registers(summing, pattern, tiling, loops)
    decisions = (
        aligning,
        Decision(
            f"a tile of {counted(pattern.height, 'row')} by {counted(tiling.vectors, 'vector')} of "
            f"{counted(tiling.lanes, 'lane')}",
            f"{tiling.limit}; all rows of a group use a row of the dense operand",
            ordering.steps,
        ),
        Decision(
            f"the tile in registers during the loop over the columns {pattern.position} of a group",
            "each row of the dense operand is read once for all rows of a group",
            summing.steps,
        ),
        _in_code(pattern, loops, accumulators, copy),
        *several_tiles(tiling, loops.tile),
        # A result that is added to is read, which would wait for memory.
        *(
            around_caches(result, accumulators.copy_block, hardware, stats)
            if pattern.is_initialized
            else ()
        ),
        prefetched(
            pattern.gather,
            hardware,
            stats,
            PREFETCH,
            is_aligned=is_aligned,
            tiles=tiling.tiles or 1,
        ),
        *_results_prefetched(pattern, accumulators.copy_block, hardware, stats),
        parallel_rows(
            pattern.group,
            before=pattern.before,
            per_row=WORK_PER_ROW,
            vectors=pattern.height * tiling.vectors * (tiling.tiles or 1),
        ),
    )
    return PatternMatch(pattern.text, decisions)


def _ordered(trace: TraceBuilder, pattern: GroupedReduction, tiling: Tiling) -> VectorLoops:
    """Order the loops as group, tile, column, row, vector, lane."""
    loops = trace.split_in_vectors(
        pattern.feature,
        tiles=tiling.tiles,
        vectors=tiling.vectors,
        lanes=tiling.lanes,
        exact=tiling.exact,
    )
    if loops.tile:
        order = (loops.tile, pattern.position, pattern.row, loops.vector, loops.lane)
        trace.add("reorder", loops=tuple(loop for loop in order if loop))
    return loops


def _in_registers(
    trace: TraceBuilder, pattern: GroupedReduction, tiling: Tiling, loops: VectorLoops
) -> tuple[AccumulatorLoops, VectorLoops]:
    """Accumulate a tile in a local buffer. Return its loops, and those over the features of its copy."""
    accumulators = trace.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=loops.tile or pattern.group,
        reduction=pattern.position,
        inside=[loop for loop in (pattern.row, loops.vector, loops.lane) if loop],
        elements=(pattern.row, pattern.feature),
        over_iterators=True,
    )
    copy = trace.split_in_vectors(
        accumulators.copy[pattern.feature],
        tiles=1,
        vectors=tiling.vectors,
        lanes=tiling.lanes,
        exact=loops.lane == pattern.feature,
    )
    return accumulators, copy


def _in_code(
    pattern: GroupedReduction, loops: VectorLoops, accumulators: AccumulatorLoops, copy: VectorLoops
) -> Decision:
    """Vectorize the lanes, and unroll the vectors and rows of a tile."""
    trace = TraceBuilder()
    for nest in (loops, accumulators.init_of(loops), copy):
        trace.add("vectorize", loop=nest.lane)
        if nest.vector:
            trace.add("unroll", loop=nest.vector)
    rows = (pattern.row, accumulators.init[pattern.row], accumulators.copy[pattern.row])
    for row in rows:
        trace.add("unroll", loop=row)
    return Decision(
        "features in lanes, and the rows and vectors of a tile unrolled",
        "features are contiguous, and registers are assigned at compile time",
        trace.steps,
    )


def _results_prefetched(
    pattern: GroupedReduction, copy_block: str, hardware: HardwareParams, stats: Stats | None
) -> tuple[Decision, ...]:
    """Decide whether the row of the result that a later group stores is prefetched."""
    row_bytes = pattern.gather.row_bytes
    if stats is None or pattern.height > 1 or row_bytes > LONGEST_RESULT:
        return ()
    size = stats.rows * row_bytes
    least = PREFETCH.operand_bytes(hardware)
    if size < least:
        return ()
    distance = RESULT_LINES_AHEAD // max(1, row_bytes // LINE_BYTES)
    args: dict[str, Arg] = {
        "block": copy_block,
        "buffer": pattern.output,
        "loop": pattern.group,
        "distance": distance,
    }
    why = (
        f"rows are in any order, so that the processor does not find them itself, and {pattern.output} has "
        f"{size_in_words(size)} (prefetching pays from {size_in_words(least)})"
    )
    what = f"rows of {pattern.output} prefetched {counted(distance, 'group')} ahead"
    return (Decision(what, why, (Step("prefetch", args),)),)
