"""Sparse times dense: a row of the output stays in vector registers while the loop over its nonzeros runs.

Features are split into tiles of as many vectors as fit the registers. Within a tile every nonzero is read
once, and its row of the dense operand is accumulated with one fused multiply-add per vector. Rows run in
parallel, balanced by nonzeros. CSR, ELL, DCSR, ragged rows and bitmasks are scheduled alike.

If the features fill one or two vectors only, one chain of multiply-adds for each would leave the units idle
while they wait for the last sum. Several elements of a long row are then added to sums of their own, which
are added at the end of the row. Up to four vectors have such sums if they are aligned to the rows of the
dense operand.

Rows of many features that are used often come from a distant cache. Then tiles of features run in parallel
instead, and each thread packs the tile of the dense operand that it reads.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Function, Iteration, Module
from gossamer_ir.sizing.csr_form import CsrForm, csr_form
from gossamer_ir.support.counted import counted
from gossamer_schedule.rules.analysis.iterations import single_iteration
from gossamer_schedule.rules.analysis.outputs import has_rows_and_init
from gossamer_schedule.rules.decisions.alignment import align_to_rows
from gossamer_schedule.rules.decisions.gather_tiling import GatherTiling, gather_tiling
from gossamer_schedule.rules.decisions.packing import ThreadTiles, thread_tiles
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.partial_sums import (
    PartialSums,
    add_side_by_side,
    may_add_side_by_side,
    partial_sums,
)
from gossamer_schedule.rules.decisions.prefetching import prefetch_rows
from gossamer_schedule.rules.decisions.streaming import store_around_caches, streaming_verdict
from gossamer_schedule.rules.decisions.thread_tiles import run_thread_tiles
from gossamer_schedule.rules.decisions.tile_loops import run_tiles
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.patterns.row_reduction import RowReduction, row_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import (
    TileNest,
    TileNests,
    accumulate_tile,
    tile_around,
)
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


@schedule_rule(
    pattern=('`out[i, k] = out[i, k] + ...` over row, fiber and features (`[I, J, K]`, "SRS")'),
    programs="the same times a matrix; segments of features",
    schedule=(
        "features in tiles of vector registers, aligned to the cache lines of the dense operand if it "
        "stays in the shared cache; rows of a larger operand are prefetched; large results are stored "
        "around the caches; several partial sums of long rows of a few vectors, whose operand is packed "
        "if it is small; tiles of features of a large operand that is used often run in parallel, each "
        "packed by its thread"
    ),
    handles_siblings=True,
)
def row_spmm(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over fibers with a feature loop; None for any other program."""
    program, pattern = single_iteration(module), row_reduction(module)
    if program is None or pattern is None or not pattern.feature or pattern.features == 0:
        return None
    hardware, trace = hardware_params(target), context.new_trace()
    form = _form(pattern, hardware, context)
    # Before the other cases, since none of them can use vectors.
    if not pattern.is_regular:
        trace.decide("one feature at a time", "an operand is read in a way that vectors cannot do")
        vectors = 1
    elif sums := _partial_sums(*program, pattern, form, hardware, context):
        vectors = sums.tile.vectors
        stored_by = add_side_by_side(trace, pattern, sums, hardware)
        if sums.aligning.pays:
            _store(trace, pattern, stored_by, hardware, context.stats)
    elif pattern.features == 1:
        vectors = _accumulate_feature(trace, pattern, pattern.feature)
    else:
        # Of a sibling, the row is an iterator of the block around all of them.
        has_rows = not context.is_sibling and has_rows_and_init(*program)
        packed = thread_tiles(pattern.gather, hardware, context.stats) if has_rows else None
        if packed and form == "packed_tiles":
            _accumulate_packed_tiles(trace, pattern, packed, hardware, context)
            return PatternMatch(pattern.text, trace)
        vectors = _accumulate_tiles(trace, pattern, hardware, context, has_rows=has_rows)
        if packed and packed.tiles.tiles != 1:
            trace.decide("the dense operand is read where it is", packed.packing.why)
    run_rows_in_parallel(trace, pattern.row, before=pattern.before, vectors=vectors)
    return PatternMatch(pattern.text, trace)


def _accumulate_tiles(
    trace: TraceBuilder,
    pattern: RowReduction,
    hardware: HardwareParams,
    context: RuleContext,
    *,
    has_rows: bool,
) -> int:
    """Accumulate tiles of features in registers. Return the vectors of work per element.

    The result of a sibling is not stored around the caches: the next one may read it (measured on attention:
    1.4 to 8 times slower).
    """
    gather, stats = pattern.gather, context.stats
    tiling = gather_tiling(gather, hardware, stats, context.thresholds.prefetch, has_rows=has_rows)
    align_to_rows(trace, gather, tiling.aligning, hardware)
    nests = _accumulate_tile(trace, pattern, tiling)
    run_tile_in_vectors(trace, nests.all)
    run_tiles(trace, tiling.tiles, nests.update.features.tile)
    if not context.is_sibling:
        _store(trace, pattern, nests.copy_block, hardware, stats)
    prefetch_rows(trace, gather, tiling.prefetching, tiles=tiling.tiles.tiles or 1)
    return tiling.tiles.work


def _accumulate_packed_tiles(
    trace: TraceBuilder,
    pattern: RowReduction,
    packed: ThreadTiles,
    hardware: HardwareParams,
    context: RuleContext,
) -> None:
    """Accumulate tiles of features in registers, one tile of all rows after the other."""
    nests = run_thread_tiles(trace, pattern, packed)
    _store(trace, pattern, nests.copy_block, hardware, context.stats)


def _store(
    trace: TraceBuilder,
    pattern: RowReduction,
    copy_block: str,
    hardware: HardwareParams,
    stats: Stats | None,
) -> None:
    """Store the results around the caches, if that pays."""
    stored = streaming_verdict(pattern.output, pattern.gather.row_bytes, hardware, stats)
    store_around_caches(trace, pattern.output, stored, copy_block=copy_block)


def _accumulate_tile(trace: TraceBuilder, pattern: RowReduction, tiling: GatherTiling) -> TileNests:
    """Order the loops as tile, position, vector, lane, and accumulate a tile in a local buffer."""
    inner = (*pattern.words, pattern.position)
    loops = tile_around(trace, pattern.feature, tiling.tiles, inner=inner)
    trace.decide(*_tiles_in_words(pattern, tiling))
    nests = accumulate_tile(
        trace,
        pattern,
        tiling.tiles,
        update=TileNest(None, loops),
        holder=loops.tile or pattern.row,
        reduction=pattern.reduction,
        over_iterators=tiling.aligning.pays,
    )
    trace.decide(
        f"a tile of row {pattern.row} in registers during the loop over its elements {pattern.position}",
        "each element is read once per tile, and the result is written once",
    )
    return nests


def _tiles_in_words(pattern: RowReduction, tiling: GatherTiling) -> tuple[str, str]:
    """Return the tiles of features in words, and the reason for them."""
    tiles = tiling.tiles
    what = f"features in {tiles.text}"
    if pattern.features is None:
        return what, "their number is known at run time only, so every vector of a tile is masked"
    filled = counted(-(-pattern.features // tiles.lanes), "vector")
    rest = (
        "no lane is left over" if tiles.is_exact else "the lanes left over in the last are masked"
    )
    why = (
        f"{pattern.features} features of {pattern.dtype} fill {filled}; a tile has {tiling.limit}; "
        f"tiles have equal size, and {rest}"
    )
    return what, why


def _accumulate_feature(trace: TraceBuilder, pattern: RowReduction, feature: str) -> int:
    """Compute the one feature of a row as a dot product. Return the vectors of work per element."""
    # The reduction must be innermost for the accumulator to be a scalar.
    trace.reorder(feature, *pattern.words, pattern.position)
    trace.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=feature,
        reduction=pattern.reduction,
    )
    trace.decide(
        f"the one feature of a row {pattern.row} in a register",
        "a single feature does not fill a vector; each row is a dot product",
    )
    return 1


def _form(pattern: RowReduction, hardware: HardwareParams, context: RuleContext) -> CsrForm:
    """Return the form that the sizes select."""
    gather = pattern.gather
    may_pack = gather.operand is not None
    return csr_form(gather.features, gather.dtype, hardware, context.stats, may_pack=may_pack)


def _partial_sums(
    function: Function,
    iteration: Iteration,
    pattern: RowReduction,
    form: CsrForm,
    hardware: HardwareParams,
    context: RuleContext,
) -> PartialSums | None:
    """Return the partial sums of a row that run side by side; None if they do not pay or are not possible."""
    sums = (
        None if context.is_sibling else partial_sums(pattern.gather, form, hardware, context.stats)
    )
    return sums if sums and may_add_side_by_side(function, iteration) else None
