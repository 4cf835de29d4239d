"""Sparse times dense: a row of the output stays in vector registers while the loop over its nonzeros runs.

Features are split into tiles of as many vectors as fit the registers. Within a tile every nonzero is read
once, and its row of the dense operand is accumulated with one fused multiply-add per vector. Rows run in
parallel, balanced by nonzeros. CSR, ELL, DCSR, ragged rows and bitmasks are scheduled alike.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Decision, Target
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Module
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
from gossamer_schedule.rules.patterns.gathers import Gather, gather_of
from gossamer_schedule.rules.patterns.row_reduction import (
    RowReduction,
    has_rows_and_init,
    single_iteration,
    sparse_reduction,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import TraceBuilder, VectorLoops


@schedule_rule(
    pattern=('`out[i, k] = out[i, k] + ...` over row, fiber and features (`[I, J, K]`, "SRS")'),
    programs="the same times a matrix; segments of features",
    schedule=(
        "features in tiles of vector registers, aligned to the cache lines of the dense operand if it "
        "stays in the shared cache; rows of a larger operand are prefetched; large results are stored "
        "around the caches"
    ),
    handles_parts=True,
)
def row_spmm(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over fibers with a feature loop; None for any other program.

    Vectors of a part are not aligned: the row is an iterator of the block around all parts. The result of a
    part is not stored around the caches: the next part may read it (measured on attention: 1.4 to 8 times
    slower).
    """
    program, pattern = single_iteration(module), sparse_reduction(module)
    if program is None or pattern is None or not pattern.feature or pattern.features == 0:
        return None
    decisions: tuple[Decision, ...]
    # Before the other cases, since none of them can use vectors.
    hardware = hardware_params(target)
    if not pattern.is_regular:
        why = "an operand is read in a way that vectors cannot do"
        decisions = (Decision("one feature at a time", why), _parallel(pattern, 1))
    elif pattern.features == 1:
        decisions = (_single_feature(pattern), _parallel(pattern, 1))
    else:
        gather = gather_of(*program, pattern)
        # In a part, the row is an iterator of the block around all parts.
        has_rows = context.part is None and has_rows_and_init(*program)
        decisions = _in_tiles(pattern, gather, hardware, context, has_rows=has_rows)
    return PatternMatch(pattern.text, decisions)


def _in_tiles(
    pattern: RowReduction,
    gather: Gather,
    hardware: HardwareParams,
    context: RuleContext,
    *,
    has_rows: bool,
) -> tuple[Decision, ...]:
    """Return the decisions for tiles of features in registers."""
    stats, part = context.stats, context.part
    prefetch = PREFETCH if part is None else part.prefetch
    aligning = alignment(gather, hardware, stats, has_rows=has_rows)
    is_aligned = bool(aligning.steps)
    why_not = why_not_prefetched(gather, hardware, stats, prefetch, is_aligned=is_aligned)
    tiling = tiling_of(
        pattern.features, pattern.dtype, hardware, is_aligned=is_aligned, is_prefetched=not why_not
    )
    tiles, loops = _tiles(pattern, tiling)
    in_registers, init, copy = _in_registers(pattern, tiling, loops)
    prefetching = prefetched(
        gather, hardware, stats, prefetch, is_aligned=is_aligned, tiles=tiling.tiles or 1
    )
    result = Result(pattern.output, pattern.features, pattern.dtype)
    return (
        aligning,
        tiles,
        in_registers,
        _vectors(loops, init, copy.loops),
        *several_tiles(tiling, loops.tile),
        *(around_caches(result, copy.block, hardware, stats) if part is None else ()),
        prefetching,
        _parallel(pattern, tiling.vectors * (tiling.tiles or 1)),
    )


def _tiles(pattern: RowReduction, tiling: Tiling) -> tuple[Decision, VectorLoops]:
    """Order the loops as tile, position, vector, lane. Return them with the decision."""
    trace = TraceBuilder()
    loops = trace.split_in_vectors(
        pattern.feature,
        tiles=tiling.tiles,
        vectors=tiling.vectors,
        lanes=tiling.lanes,
        exact=tiling.exact,
    )
    if loops.tile:
        # Positions inside of tiles: the accumulators of a tile stay in registers during the loop over
        # nonzeros.
        order = (loops.tile, *pattern.words, pattern.position, loops.vector, loops.lane)
        trace.add("reorder", loops=tuple(loop for loop in order if loop))
    tile = f"{counted(tiling.vectors, 'vector')} of {tiling.lanes} lanes"
    if pattern.features is None or tiling.tiles is None:
        why = "their number is known at run time only, so every vector of a tile is masked"
        return Decision(f"features in tiles of {tile}", why, trace.steps), loops
    vectors = counted(-(-pattern.features // tiling.lanes), "vector")
    rest = "no lane is left over" if tiling.exact else "the lanes left over in the last are masked"
    decision = Decision(
        f"features in {counted(tiling.tiles, 'tile')} of {tile}",
        f"{pattern.features} features of {pattern.dtype} fill {vectors}; a tile has {tiling.limit}; "
        f"tiles have equal size, and {rest}",
        trace.steps,
    )
    return decision, loops


class _Copy(NamedTuple):
    """The block that copies a tile from registers to the output, and its loops."""

    block: str
    loops: VectorLoops


def _in_registers(
    pattern: RowReduction, tiling: Tiling, loops: VectorLoops
) -> tuple[Decision, VectorLoops, _Copy]:
    """Return the decision to accumulate a tile in a local buffer, the loops of its init, and its copy."""
    trace = TraceBuilder()
    inside = [loop for loop in (loops.vector, loops.lane) if loop]
    accumulators = trace.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=loops.tile or pattern.row,
        reduction=pattern.reduction,
        inside=inside,
        elements=(pattern.feature,),
        over_iterators=tiling.is_aligned,
    )
    copy = trace.split_in_vectors(
        accumulators.copy[pattern.feature],
        tiles=1,
        vectors=tiling.vectors,
        lanes=tiling.lanes,
        exact=loops.lane == pattern.feature,
    )
    decision = Decision(
        f"a tile of row {pattern.row} in registers during the loop over its elements {pattern.position}",
        "each element is read once per tile, and the result is written once",
        trace.steps,
    )
    return decision, accumulators.init_of(loops), _Copy(accumulators.copy_block, copy)


def _vectors(block: VectorLoops, init: VectorLoops, copy: VectorLoops) -> Decision:
    """Vectorize the lanes and unroll the vectors of the block, of its init and of its copy."""
    trace = TraceBuilder()
    for loops in (block, init, copy):
        trace.add("vectorize", loop=loops.lane)
    if block.vector:
        for loops in (block, init, copy):
            trace.add("unroll", loop=loops.vector)
    return Decision(
        "lanes vectorized, and the vectors of a tile unrolled",
        "features are contiguous, and registers are assigned at compile time",
        trace.steps,
    )


def _single_feature(pattern: RowReduction) -> Decision:
    """Return the decision for one column: a dot product per row."""
    trace = TraceBuilder()
    # The reduction must be innermost for the accumulator to be a scalar.
    trace.add("reorder", loops=(pattern.feature, *pattern.words, pattern.position))
    trace.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=pattern.feature,
        reduction=pattern.reduction,
    )
    return Decision(
        f"the one feature of a row {pattern.row} in a register",
        "a single feature does not fill a vector; each row is a dot product",
        trace.steps,
    )


def _parallel(pattern: RowReduction, vectors: int) -> Decision:
    return parallel_rows(pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=vectors)
