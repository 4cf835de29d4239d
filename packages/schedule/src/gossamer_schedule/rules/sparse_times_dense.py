"""Sparse times dense: a row of the output stays in vector registers while the loop over its nonzeros runs.

Features are split into tiles of as many vectors as fit the registers. Within a tile every nonzero is read
once, and its row of the dense operand is accumulated with one fused multiply-add per vector. Rows run in
parallel, balanced by nonzeros. CSR, ELL, DCSR and ragged rows are scheduled alike.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Decision, ScheduleReport, Stats, Target
from gossamer_ir.nodes import Module
from gossamer_ir.support.counted import counted
from gossamer_schedule.rules.cost.machine import accumulators_of, lanes_of
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.plan import Plan, VectorLoops
from gossamer_schedule.rules.recognize.gathers import (
    Gather,
    PrefetchThresholds,
    gathered_operand,
    prefetched,
)
from gossamer_schedule.rules.recognize.row_reduction import (
    SparseReduction,
    single_iteration,
    sparse_reduction,
)

SYMBOLIC_VECTORS = 4
"""Vectors per tile if the number of features is known at run time only. All of them are masked."""

LARGEST_TILE = 256
"""Maximum number of features of a tile: 16 vectors of 512 bits in float32."""

UNROLLED_TILES = 4
"""Maximum number of tiles that are unrolled if the last one is partial; this is fewer than 64 vectors of
code. The alternative, a loop over whole tiles and a peeled last tile, is 0.9 to 1 times as fast (measured on
rows of 4 and of 100 elements: each tile finds the row anew). It is 1.1 to 1.4 times as fast as a loop in
which all tiles are masked."""

PREFETCH = PrefetchThresholds(least_row=512, least_operand=2 << 20)
"""Minimum bytes of a gathered row and of the operand for prefetching to pay. An operand of this size exceeds
the private caches of a core (measured: 1.1 to 1.6 times faster from there to beyond the shared cache, and
0.85 below)."""

WORK_PER_ROW = 4
"""Cost of a row besides its nonzeros, in nonzeros."""


class _Tiling(NamedTuple):
    """Features as `tiles` (None: symbolic) of `vectors` of `lanes`; exact if no lane is left over."""

    tiles: int | None
    vectors: int
    lanes: int
    exact: bool


def sparse_times_dense(
    module: Module, target: Target, stats: Stats | None, *, prefetch: PrefetchThresholds = PREFETCH
) -> ScheduleReport | None:
    """Return the schedule for a reduction over fibres with a feature loop; None for any other program."""
    pattern = sparse_reduction(module)
    if pattern is None or not pattern.feature or pattern.features == 0:
        return None
    decisions = _decisions(module, pattern, target=target, stats=stats, prefetch=prefetch)
    return ScheduleReport("sparse_times_dense", pattern.text, decisions)


def _decisions(
    module: Module,
    pattern: SparseReduction,
    *,
    target: Target,
    stats: Stats | None,
    prefetch: PrefetchThresholds,
) -> tuple[Decision, ...]:
    if not pattern.is_regular:
        scalar = Decision(
            "one feature at a time", "an operand is read in a way that vectors cannot do"
        )
        return scalar, _parallel(pattern, 1)
    if pattern.features == 1:
        return _single_feature(pattern), _parallel(pattern, 1)
    tiling = _tiling(pattern, target)
    tiles, loops = _tiles(pattern, tiling, target)
    in_registers, init, copy = _in_registers(pattern, tiling, loops)
    return (
        tiles,
        in_registers,
        _vectors(loops, init, copy),
        *_several_tiles(tiling, loops.tile),
        _prefetched(module, pattern, stats, prefetch),
        _parallel(pattern, tiling.vectors * (tiling.tiles or 1)),
    )


def _prefetched(
    module: Module, pattern: SparseReduction, stats: Stats | None, prefetch: PrefetchThresholds
) -> Decision:
    """Decide whether rows of the dense operand are prefetched."""
    found = single_iteration(module)
    operand = (
        gathered_operand(*found, column=pattern.position, feature=pattern.feature) if found else ""
    )
    gather = Gather(operand, pattern.features, pattern.dtype, pattern.block, pattern.position)
    return prefetched(gather, stats, prefetch)


def _tiling(pattern: SparseReduction, target: Target) -> _Tiling:
    """Return the fewest tiles that hold all features, all of the same size."""
    lanes = lanes_of(target, pattern.dtype)
    features = pattern.features
    if features is None:
        return _Tiling(None, SYMBOLIC_VECTORS, lanes, exact=False)
    while lanes // 2 >= features:
        lanes //= 2
    vectors = -(-features // lanes)
    tiles = -(-vectors // _most_vectors(target, lanes))
    per_tile = -(-vectors // tiles)
    return _Tiling(tiles, per_tile, lanes, exact=tiles * per_tile * lanes == features)


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
) -> tuple[Decision, VectorLoops, VectorLoops]:
    """Return the decision to accumulate a tile in a local buffer, and the loops of its init and of its
    copy."""
    plan = Plan()
    inside = [loop for loop in (loops.vector, loops.lane) if loop]
    accumulators = plan.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=loops.tile or pattern.row,
        reduction=pattern.position,
        inside=inside,
        elements=(pattern.feature,),
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
    return decision, accumulators.init_of(loops), copy


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
