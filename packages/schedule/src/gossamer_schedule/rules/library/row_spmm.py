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

from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec.structs import replace

from gossamer_heuristics.csr_form import csr_form
from gossamer_ir.nodes import Function, Iteration, Module
from gossamer_schedule.rules.analysis.iterations import single_iteration
from gossamer_schedule.rules.analysis.outputs import has_rows_and_init
from gossamer_schedule.rules.decisions.alignment import align_to_rows
from gossamer_schedule.rules.decisions.gather_tiling import (
    GatherTiling,
    choose_tiles,
    gather_tiling,
)
from gossamer_schedule.rules.decisions.nontemporal import (
    nontemporal_verdict,
    store_results_nontemporal,
)
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.partial_sums import (
    SumsForm,
    add_side_by_side,
    may_add_side_by_side,
    may_have_sums,
    numbers_of_sums,
    partial_sums,
    sums_form,
)
from gossamer_schedule.rules.decisions.prefetching.row_prefetching import prefetch_rows
from gossamer_schedule.rules.decisions.row_tiles import accumulate_row_tile
from gossamer_schedule.rules.decisions.scalable_vectors.whole_tiles import (
    accumulate_whole_tiles,
    whole_tiles_verdict,
)
from gossamer_schedule.rules.decisions.thread_tiles import (
    are_whole_tiles,
    run_thread_tiles,
    thread_tiles,
)
from gossamer_schedule.rules.decisions.tile_loops import run_tiles
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.decisions.verdict import chosen_verdict
from gossamer_schedule.rules.patterns.row_reduction import RowReduction, row_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import TileNests, tile_around
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_support.message_texts import amount

RowForm: TypeAlias = (
    SumsForm
    | Literal["single_features", "dot_products", "packed_tiles", "whole_tiles", "gathered_rows"]
)
"""The forms of `csr_form` and of `sums_form`, and those of programs without vectors of features."""


@schedule_rule(
    pattern=('`out[i, k] = out[i, k] + ...` over row, fiber and features (`[I, J, K]`, "SRS")'),
    programs="CSR, ELL, DCSR and bucketed rows times a matrix; segments of features",
    schedule=(
        "features in tiles of vector registers, with aligned or prefetched rows of the dense operand; "
        "long rows of a few vectors have several partial sums; a large operand that is used often is "
        "packed by threads, each for its tile of features"
    ),
    handles_siblings=True,
    before={"row_spmv": "its products are called most, and its module imports less"},
)
def row_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over fibers with a feature loop; None for any other program."""
    program, pattern = single_iteration(module), row_reduction(module)
    if program is None or pattern is None or not pattern.feature or pattern.features == 0:
        return None
    # In a sibling, the row is an iterator of the block around all of them.
    has_cacheable_accumulators = not context.is_sibling and has_rows_and_init(*program)
    trace = context.new_trace()
    form = _preferred_form(
        pattern, context, program=program, has_cacheable_accumulators=has_cacheable_accumulators
    )
    others = _permitted_forms(
        pattern, context, program=program, has_cacheable_accumulators=has_cacheable_accumulators
    )
    form = trace.choose(f"{pattern.block}.form", form, *others)
    match form:
        case "single_features":
            _run_single_features(trace, pattern)
        case "packed_sums" | "aligned_sums" | "sums":
            _run_sums(trace, pattern, form=form, context=context)
        case "dot_products":
            _run_dot_products(trace, pattern, feature=pattern.feature)
        case "packed_tiles":
            _run_packed_tiles(trace, pattern, context=context)
        case "whole_tiles":
            _run_whole_tiles(trace, pattern, context=context)
        case "gathered_rows":
            _run_gathered_rows(
                trace,
                pattern,
                context=context,
                has_cacheable_accumulators=has_cacheable_accumulators,
            )
    return PatternMatch(pattern.text, trace)


def _preferred_form(
    pattern: RowReduction,
    context: RuleContext,
    *,
    program: tuple[Function, Iteration],
    has_cacheable_accumulators: bool,
) -> RowForm:
    """Return the form that the sizes select, of those that the program permits."""
    gather, machine, stats = pattern.gather, context.machine, context.stats
    # Before the other cases, since none of them can use vectors.
    if not pattern.is_regular:
        return "single_features"
    if machine.is_scalable:
        if pattern.features == 1:
            return "dot_products"
        return (
            "whole_tiles"
            if whole_tiles_verdict(pattern, machine).is_profitable
            else "gathered_rows"
        )
    may_pack = gather.operand is not None
    by_sizes = csr_form(gather.features, gather.dtype, machine, stats, may_pack=may_pack)
    if not context.is_sibling:
        sums = sums_form(gather, by_sizes, machine=machine, stats=stats)
        if sums and may_add_side_by_side(*program):
            return sums
    if pattern.features == 1:
        return "dot_products"
    return (
        by_sizes if by_sizes == "packed_tiles" and has_cacheable_accumulators else "gathered_rows"
    )


def _permitted_forms(
    pattern: RowReduction,
    context: RuleContext,
    *,
    program: tuple[Function, Iteration],
    has_cacheable_accumulators: bool,
) -> Iterator[RowForm]:
    """Yield the forms that the program permits whatever the sizes of the matrix are."""
    gather, machine = pattern.gather, context.machine
    if not pattern.is_regular or pattern.features in (None, 1):
        return
    yield "gathered_rows"
    if machine.is_scalable:
        if whole_tiles_verdict(pattern, machine).is_profitable:
            yield "whole_tiles"
        return
    if has_cacheable_accumulators and are_whole_tiles(gather, machine):
        yield "packed_tiles"
    if not context.is_sibling and may_add_side_by_side(*program) and may_have_sums(gather, machine):
        yield "sums"
        if gather.operand is not None:
            yield "packed_sums"


def _run_single_features(trace: TraceBuilder, pattern: RowReduction) -> None:
    """Leave the loops of a row as they are."""
    trace.decide("one feature at a time", "an operand is read in a way that vectors cannot do")
    _run_rows(trace, pattern, vectors=1)


def _run_sums(
    trace: TraceBuilder, pattern: RowReduction, *, form: SumsForm, context: RuleContext
) -> None:
    """Add the elements of a row to several sums."""
    machine = context.machine
    sums = partial_sums(pattern.gather, form, machine=machine, stats=context.stats)
    number = trace.choose(f"{pattern.block}.sums", sums.number, *numbers_of_sums(sums, machine))
    sums = replace(sums, number=number)
    stored_by = add_side_by_side(trace, pattern, sums=sums, machine=machine, stats=context.stats)
    if sums.aligning.is_profitable:
        _store(trace, pattern, copy_block=stored_by, context=context)
    _run_rows(trace, pattern, vectors=sums.tile.vectors)


def _run_dot_products(trace: TraceBuilder, pattern: RowReduction, *, feature: str) -> None:
    """Compute the one feature of a row as a dot product."""
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
    _run_rows(trace, pattern, vectors=1)


def _run_packed_tiles(trace: TraceBuilder, pattern: RowReduction, *, context: RuleContext) -> None:
    """Accumulate tiles of features in registers, one tile of all rows after the other. Tiles run in parallel,
    so that the rows of one do not."""
    packed = thread_tiles(pattern.gather, machine=context.machine, stats=context.stats)
    packing = chosen_verdict(packed.packing, is_prior=packed.packing.is_profitable)
    packed = replace(packed, packing=packing)
    nests = run_thread_tiles(trace, pattern, packed=packed)
    _store(trace, pattern, copy_block=nests.copy_block, context=context)


def _run_gathered_rows(
    trace: TraceBuilder,
    pattern: RowReduction,
    *,
    context: RuleContext,
    has_cacheable_accumulators: bool,
) -> None:
    """Accumulate tiles of features in registers, from rows that are read where they are.

    The result of a sibling is not stored around the caches: the next one may read it (measured on attention:
    1.4 to 8 times slower).
    """
    gather, machine, stats = pattern.gather, context.machine, context.stats
    tiling = gather_tiling(
        gather,
        machine,
        stats=stats,
        thresholds=context.thresholds.prefetch,
        has_cacheable_accumulators=has_cacheable_accumulators,
    )
    tiling = choose_tiles(trace, gather, tiling=tiling, machine=machine)
    align_to_rows(trace, gather, aligning=tiling.aligning, machine=machine)
    nests = _accumulate_tile(trace, pattern, tiling=tiling)
    run_tile_in_vectors(trace, nests.all)
    run_tiles(trace, tiling.tiles, loop_name=nests.update.features.tile, block_name=pattern.block)
    if not context.is_sibling:
        _store(trace, pattern, copy_block=nests.copy_block, context=context)
    prefetch_rows(trace, gather, prefetching=tiling.prefetching, tiles=tiling.tiles.tiles or 1)
    if has_cacheable_accumulators and not machine.is_scalable:
        packed = thread_tiles(gather, machine=machine, stats=stats)
        # The reason against packing, where there are tiles that might be packed.
        if packed.tiles.tiles != 1 and not packed.packing.is_profitable:
            trace.decide("the dense operand is read where it is", packed.packing.why)
    _run_rows(trace, pattern, vectors=tiling.tiles.work)


def _run_whole_tiles(trace: TraceBuilder, pattern: RowReduction, *, context: RuleContext) -> None:
    """Accumulate whole tiles of scalable vectors, and the features left over, in registers."""
    machine = context.machine
    verdict = whole_tiles_verdict(pattern, machine)
    accumulate_whole_tiles(trace, pattern, machine=machine, verdict=verdict)
    vectors = -(-(pattern.features or 1) // machine.lanes(pattern.dtype))
    _run_rows(trace, pattern, vectors=vectors)


def _run_rows(trace: TraceBuilder, pattern: RowReduction, *, vectors: int) -> None:
    """Run rows in parallel; each of their elements takes the work of `vectors` vectors."""
    run_rows_in_parallel(trace, pattern.row, before=pattern.before, vectors=vectors)


def _store(
    trace: TraceBuilder, pattern: RowReduction, *, copy_block: str, context: RuleContext
) -> None:
    """Store the results around the caches, if that pays."""
    row_bytes = pattern.gather.row_bytes
    stored = nontemporal_verdict(
        pattern.output, row_bytes, machine=context.machine, stats=context.stats
    )
    store_results_nontemporal(trace, pattern.output, nontemporal=stored, copy_block=copy_block)


def _accumulate_tile(
    trace: TraceBuilder, pattern: RowReduction, *, tiling: GatherTiling
) -> TileNests:
    """Order the loops as tile, position, vector, lane, and accumulate a tile in a local buffer."""
    inner = (*pattern.words, pattern.position)
    loops = tile_around(trace, pattern.feature, tiling.tiles, inner=inner)
    trace.decide(*_tiles_in_words(pattern, tiling))
    return accumulate_row_tile(
        trace,
        pattern,
        tiles=tiling.tiles,
        loops=loops,
        holder=loops.tile or pattern.row,
        over_iters=tiling.aligning.is_profitable,
    )


def _tiles_in_words(pattern: RowReduction, tiling: GatherTiling) -> tuple[str, str]:
    """Return the tiles of features in words, and the reason for them."""
    tiles = tiling.tiles
    what = f"features in {tiles.text}"
    if pattern.features is None:
        return what, "their number is known at run time only, so every vector of a tile is masked"
    if tiles.is_scalable:
        return what, f"{tiling.limit}; the lanes past the last feature are masked"
    filled = amount(-(-pattern.features // tiles.lanes), "vector")
    rest = (
        "no lane is left over" if tiles.is_exact else "the lanes left over in the last are masked"
    )
    why = (
        f"{pattern.features} features of {pattern.dtype} fill {filled}; a tile has {tiling.limit}; "
        f"tiles have equal size, and {rest}"
    )
    return what, why
