"""Sparse times dense: a row of the output stays in vector registers while the loop over its nonzeros runs.

Features are split into tiles of as many vectors as fit the registers. Within a tile every nonzero is read
once, and its row of the dense operand is accumulated with one fused multiply-add per vector. Rows run in
parallel, balanced by nonzeros. CSR, ELL, DCSR and ragged rows are scheduled alike.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Decision, ScheduleReport, Stats, Target
from gossamer_ir.nodes import DenseFixed, Module
from gossamer_ir.support.counted import counted
from gossamer_schedule.rules.cost.gathered_rows import (
    PrefetchThresholds,
    aligned_to_rows,
    megabytes,
    prefetched,
)
from gossamer_schedule.rules.cost.machine import accumulators_of, lanes_of
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.plan import Plan, VectorLoops
from gossamer_schedule.rules.recognize.gathers import Gather, gathered_operand
from gossamer_schedule.rules.recognize.row_reduction import (
    SparseReduction,
    axes_of,
    single_iteration,
    sparse_reduction,
)

SYMBOLIC_VECTORS = 4
"""Vectors per tile if the number of features is known at run time only. All of them are masked."""

LARGEST_TILE = 256
"""Maximum number of features of a tile: 16 vectors of 512 bits in float32."""

MORE_TILES = 2
"""Maximum number of tiles beyond the fewest, so that fewer lanes of the last one are masked."""

PREFETCHED_VECTORS = 8
"""Maximum number of vectors of a tile if rows are prefetched. With more, the prefetches of one nonzero take
most of the buffers that wait for lines (measured at 16 vectors: 0.75 to 0.9 times as fast)."""

UNROLLED_TILES = 4
"""Maximum number of tiles that are unrolled if the last one is partial; this is fewer than 64 vectors of
code. The alternative, a loop over whole tiles and a peeled last tile, is 0.9 to 1 times as fast (measured on
rows of 4 and of 100 elements: each tile finds the row anew). It is 1.1 to 1.4 times as fast as a loop in
which all tiles are masked."""

PREFETCH = PrefetchThresholds(least_row=512, least_operand=2 << 20)
"""When prefetching pays: an operand of this size exceeds the private caches of a core (measured: 1.1 to 1.6
times faster from there to beyond the shared cache, and 0.85 below). Vectors are aligned to rows of an operand
that stays in the shared cache, where the processor's own prefetches do (0.8 to 1.05 times as fast with
others)."""

LARGE_RESULT = 16 << 20
"""Minimum bytes of a result for non-temporal stores to pay. An ordinary store reads the line first, and the
line displaces rows of the dense operand (measured: 1.1 to 1.5 times faster, more so for short rows)."""

WORK_PER_ROW = 4
"""Cost of a row besides its nonzeros, in nonzeros."""


class _Tiling(NamedTuple):
    """Features as `tiles` (None: symbolic) of `vectors` of `lanes`; exact if no lane is left over. Vectors
    may be aligned to the gathered rows."""

    tiles: int | None
    vectors: int
    lanes: int
    exact: bool
    is_aligned: bool


def sparse_times_dense(
    module: Module,
    target: Target,
    stats: Stats | None,
    *,
    prefetch: PrefetchThresholds = PREFETCH,
    is_part: bool = False,
) -> ScheduleReport | None:
    """Return the schedule for a reduction over fibres with a feature loop; None for any other program.

    Vectors of a part of several computations on the same rows are not aligned: the row is an iterator of the
    block around all parts.
    """
    pattern = sparse_reduction(module)
    if pattern is None or not pattern.feature or pattern.features == 0:
        return None
    decisions = _decisions(
        module, pattern, target=target, stats=stats, prefetch=prefetch, is_part=is_part
    )
    return ScheduleReport("sparse_times_dense", pattern.text, decisions)


def _decisions(
    module: Module,
    pattern: SparseReduction,
    *,
    target: Target,
    stats: Stats | None,
    prefetch: PrefetchThresholds,
    is_part: bool,
) -> tuple[Decision, ...]:
    if not pattern.is_regular:
        scalar = Decision(
            "one feature at a time", "an operand is read in a way that vectors cannot do"
        )
        return scalar, _parallel(pattern, 1)
    if pattern.features == 1:
        return _single_feature(pattern), _parallel(pattern, 1)
    gather = _gather(module, pattern)
    alignment = _alignment(module, gather, lanes_of(target, pattern.dtype), stats, is_part=is_part)
    is_aligned = bool(alignment.steps)
    is_prefetched = not is_aligned and bool(prefetched(gather, stats, prefetch).steps)
    tiling = _tiling(pattern, target, is_aligned=is_aligned, is_prefetched=is_prefetched)
    tiles, loops = _tiles(pattern, tiling, target)
    in_registers, init, copy, copy_block = _in_registers(pattern, tiling, loops)
    return (
        alignment,
        tiles,
        in_registers,
        _vectors(loops, init, copy),
        *_several_tiles(tiling, loops.tile),
        *_around_caches(pattern, copy_block, stats),
        _prefetched(gather, tiling, stats, prefetch),
        _parallel(pattern, tiling.vectors * (tiling.tiles or 1)),
    )


def _gather(module: Module, pattern: SparseReduction) -> Gather:
    """Return the rows of the dense operand that the loop over nonzeros gathers."""
    found = single_iteration(module)
    operand = (
        gathered_operand(*found, column=pattern.position, feature=pattern.feature) if found else ""
    )
    return Gather(
        operand, pattern.features, pattern.dtype, pattern.block, pattern.position, pattern.feature
    )


def _alignment(
    module: Module, gather: Gather, lanes: int, stats: Stats | None, *, is_part: bool
) -> Decision:
    """Decide whether vectors are aligned. Then the accumulators are a cache over the iterators of the block,
    which must include the row of the output and begin at the identity of the reduction."""
    if is_part or not _has_rows_and_init(module):
        why = "the accumulators of a row cannot be indexed by the iterators of the block alone"
        return Decision("vectors begin at the first feature", why)
    return aligned_to_rows(gather, lanes, stats)


def _has_rows_and_init(module: Module) -> bool:
    """Return whether the first iterator is the row of the output, and the output is initialized."""
    found = single_iteration(module)
    if found is None:
        return False
    function, iteration = found
    row = axes_of(function, iteration)[0]
    return isinstance(row, DenseFixed) and integer_value(row.length) != 1 and bool(iteration.init)


def _prefetched(
    gather: Gather, tiling: _Tiling, stats: Stats | None, prefetch: PrefetchThresholds
) -> Decision:
    """Decide whether rows are prefetched."""
    if tiling.is_aligned and stats is not None:
        why = f"{gather.operand} stays in the shared cache, and prefetches would only add instructions"
        return Decision("no prefetching", why)
    return prefetched(gather, stats, prefetch, tiles=tiling.tiles or 1)


def _tiling(
    pattern: SparseReduction, target: Target, *, is_aligned: bool, is_prefetched: bool
) -> _Tiling:
    """Return the fewest tiles that hold all features, all of the same size.

    Aligned vectors are one more than the features fill; a tile may hold one more, too. Tiles of rows that are
    prefetched are smaller.
    """
    lanes = lanes_of(target, pattern.dtype)
    features = pattern.features
    if features is None:
        return _Tiling(None, SYMBOLIC_VECTORS, lanes, exact=False, is_aligned=False)
    while lanes // 2 >= features:
        lanes //= 2
    vectors = -(-features // lanes) + is_aligned
    most = _most_vectors(target, lanes)
    if is_prefetched:
        most = min(most, PREFETCHED_VECTORS)
    tiles = _number_of_tiles(vectors, most + is_aligned)
    per_tile = -(-vectors // tiles)
    exact = tiles * per_tile * lanes == features + is_aligned * lanes
    return _Tiling(tiles, per_tile, lanes, exact=exact, is_aligned=is_aligned)


def _number_of_tiles(vectors: int, most: int) -> int:
    """Return the number of tiles of at most so many vectors: the fewest of those that leave the fewest lanes
    over, of up to `MORE_TILES` more than are needed."""
    fewest = -(-vectors // most)
    candidates = range(fewest, fewest + MORE_TILES + 1)
    return min(candidates, key=lambda tiles: -vectors % tiles)


def _most_vectors(target: Target, lanes: int) -> int:
    """Return the maximum number of vectors of a tile."""
    return min(accumulators_of(target), LARGEST_TILE // lanes)


def _tiles(
    pattern: SparseReduction, tiling: _Tiling, target: Target
) -> tuple[Decision, VectorLoops]:
    """Order the loops as tile, position, vector, lane. Return them with the decision."""
    plan = Plan()
    loops = plan.split_in_vectors(
        pattern.feature,
        tiles=tiling.tiles,
        vectors=tiling.vectors,
        lanes=tiling.lanes,
        exact=tiling.exact,
    )
    if loops.tile:
        order = (loops.tile, pattern.position, loops.vector, loops.lane)
        plan.add("reorder", loops=tuple(loop for loop in order if loop))
    tile = f"{counted(tiling.vectors, 'vector')} of {tiling.lanes} lanes"
    if pattern.features is None or tiling.tiles is None:
        why = "their number is known at run time only, so every vector of a tile is masked"
        return Decision(f"features in tiles of {tile}", why, plan.steps), loops
    vectors = counted(-(-pattern.features // tiling.lanes), "vector")
    rest = "no lane is left over" if tiling.exact else "the lanes left over in the last are masked"
    decision = Decision(
        f"features in {counted(tiling.tiles, 'tile')} of {tile}",
        f"{pattern.features} features of {pattern.dtype} fill {vectors}; a tile has "
        f"{_most_vectors(target, tiling.lanes)} at most, half of the registers and {LARGEST_TILE} features; "
        f"tiles have equal size, and {rest}",
        plan.steps,
    )
    return decision, loops


def _in_registers(
    pattern: SparseReduction, tiling: _Tiling, loops: VectorLoops
) -> tuple[Decision, VectorLoops, VectorLoops, str]:
    """Return the decision to accumulate a tile in a local buffer, the loops of its init and of its copy, and
    the block that copies it."""
    plan = Plan()
    inside = [loop for loop in (loops.vector, loops.lane) if loop]
    accumulators = plan.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=loops.tile or pattern.row,
        reduction=pattern.position,
        inside=inside,
        elements=(pattern.feature,),
        over_iterators=tiling.is_aligned,
    )
    copy = plan.split_in_vectors(
        accumulators.copy[pattern.feature],
        tiles=1,
        vectors=tiling.vectors,
        lanes=tiling.lanes,
        exact=loops.lane == pattern.feature,
    )
    decision = Decision(
        f"a tile of row {pattern.row} in registers during the loop over its elements {pattern.position}",
        "each element is read once per tile, and the result is written once",
        plan.steps,
    )
    return decision, accumulators.init_of(loops), copy, accumulators.copy_block


def _around_caches(
    pattern: SparseReduction, copy_block: str, stats: Stats | None
) -> tuple[Decision, ...]:
    """Decide whether the result is stored around the caches."""
    if stats is None or pattern.features is None:
        return ()
    size = stats.rows * pattern.features * DType.parse(pattern.dtype).bits // 8
    if size < LARGE_RESULT:
        return ()
    plan = Plan()
    plan.add("store_nontemporal", block=copy_block, buffer=pattern.output)
    why = (
        f"{pattern.output} has {megabytes(size)}, and from {megabytes(LARGE_RESULT)} its lines would "
        "displace the gathered rows and be evicted before they are read"
    )
    return (Decision(f"{pattern.output} is stored around the caches", why, plan.steps),)


def _vectors(block: VectorLoops, init: VectorLoops, copy: VectorLoops) -> Decision:
    """Vectorize the lanes and unroll the vectors of the block, of its init and of its copy."""
    plan = Plan()
    for loops in (block, init, copy):
        plan.add("vectorize", loop=loops.lane)
    if block.vector:
        for loops in (block, init, copy):
            plan.add("unroll", loop=loops.vector)
    return Decision(
        "lanes vectorized, and the vectors of a tile unrolled",
        "features are contiguous, and registers are assigned at compile time",
        plan.steps,
    )


def _several_tiles(tiling: _Tiling, tile: str) -> tuple[Decision, ...]:
    """Decide how the loop over tiles runs, if there is one."""
    if tiling.tiles == 1:
        return ()
    if tiling.exact or tiling.tiles is None:
        why = "all tiles are alike, so unrolling would only add code"
        return (Decision("a loop over tiles", why),)
    plan = Plan()
    if tiling.tiles > UNROLLED_TILES:
        plan.add("annotate", name=tile, key="last", value="apart")
        why = f"only the last tile needs masks, and more than {UNROLLED_TILES} copies are too much code"
        return (Decision("a loop over whole tiles, with the last tile peeled", why, plan.steps),)
    plan.add("unroll", loop=tile)
    why = f"then only the last tile needs masks, and up to {UNROLLED_TILES} tiles are little code"
    return (Decision("tiles unrolled", why, plan.steps),)


def _single_feature(pattern: SparseReduction) -> Decision:
    """Return the decision for one column: a dot product per row."""
    plan = Plan()
    plan.add("reorder", loops=(pattern.feature, pattern.position))
    plan.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=pattern.feature,
        reduction=pattern.position,
    )
    return Decision(
        f"the one feature of a row {pattern.row} in a register",
        "a single feature does not fill a vector; each row is a dot product",
        plan.steps,
    )


def _parallel(pattern: SparseReduction, vectors: int) -> Decision:
    return parallel_rows(pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=vectors)
