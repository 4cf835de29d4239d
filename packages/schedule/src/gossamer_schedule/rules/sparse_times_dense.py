"""Sparse times dense: a row of the output stays in vector registers while its nonzeros pass by.

Features are cut into tiles of as many vectors as registers hold; within a tile every nonzero is read
once, and its row of the dense operand is accumulated with one fused multiply-add per vector. Rows
run in parallel, balanced by nonzeros. CSR, ELL, DCSR and ragged rows are all alike here.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.counted import counted
from gossamer_ir.interchange.records import (
    Arg,
    Decision,
    ScheduleReport,
    Stats,
    Step,
    Target,
    Trace,
)
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.cost.machine import accumulators_of, lanes_of
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.recognise.gathers import Ahead, Gather, gathered_operand, prefetched
from gossamer_schedule.rules.recognise.row_reduction import (
    SparseReduction,
    single_iteration,
    sparse_reduction,
)

SYMBOLIC_VECTORS = 4
"""Vectors per tile where the number of features is known at run time only: all are masked."""

LARGEST_TILE = 256
"""Features of a tile at most, however many lanes a vector has: 16 vectors of 512 bits in float32."""

UNROLLED_TILES = 4
"""As many tiles at most are copies in code where the last one is partial, which stays below 64 vectors. A
loop over whole tiles with the last one behind it is 0.9 to 1 times as fast (measured on rows of four and
of a hundred elements: each tile finds the row anew), but 1.1 to 1.4 times as fast as one whose tiles are
all masked."""

AHEAD = Ahead(least_row=512, least_operand=2 << 20)
"""Bytes of a gathered row from which asking for it costs less than waiting, and bytes of the operand
that are more than the caches hold that a core has for itself (measured: 1.1 to 1.6 times faster from
there to beyond the shared cache, and 0.85 on less)."""

WORK_PER_ROW = 4
"""What a row costs besides its nonzeros, in nonzeros."""


class _Nest(NamedTuple):
    """`tiles` (None: symbolic) of `vectors` vectors of `lanes`; exact: no lane is left over.

    The loops over them; "" where there is only one tile, or one vector.
    """

    tiles: int | None
    vectors: int
    lanes: int
    exact: bool
    tile: str
    vector: str
    lane: str


def sparse_times_dense(
    module: Module, target: Target, stats: Stats | None, *, ahead: Ahead = AHEAD
) -> ScheduleReport | None:
    """The schedule for a reduction over fibres with a feature loop; None for anything else."""
    pattern = sparse_reduction(module)
    if pattern is None or not pattern.feature or pattern.features == 0:
        return None
    decisions = _decisions(module, pattern, target=target, stats=stats, ahead=ahead)
    return ScheduleReport("sparse_times_dense", pattern.text, decisions)


def _decisions(
    module: Module,
    pattern: SparseReduction,
    *,
    target: Target,
    stats: Stats | None,
    ahead: Ahead,
) -> tuple[Decision, ...]:
    if not pattern.is_regular:
        scalar = Decision(
            "one feature at a time", "an operand is read in a way that vectors cannot follow"
        )
        return scalar, _parallel(pattern, 1)
    if pattern.features == 1:
        return _single_feature(pattern), _parallel(pattern, 1)
    nest = _nest(pattern, target)
    return (
        _tiles(pattern, nest, target),
        _in_registers(pattern, nest),
        _vectors(pattern, nest),
        *_several_tiles(nest),
        _prefetched(module, pattern, stats, ahead),
        _parallel(pattern, nest.vectors * (nest.tiles or 1)),
    )


def _prefetched(
    module: Module, pattern: SparseReduction, stats: Stats | None, ahead: Ahead
) -> Decision:
    """Whether rows of the dense operand are asked for ahead."""
    found = single_iteration(module)
    operand = (
        gathered_operand(*found, column=pattern.position, feature=pattern.feature) if found else ""
    )
    gather = Gather(operand, pattern.features, pattern.dtype, pattern.block, pattern.position)
    return prefetched(gather, stats, ahead)


def _nest(pattern: SparseReduction, target: Target) -> _Nest:
    lanes = lanes_of(target, pattern.dtype)
    features = pattern.features
    if features is None:
        return _named(pattern.feature, None, SYMBOLIC_VECTORS, lanes, exact=False)
    while lanes // 2 >= features:
        lanes //= 2
    vectors = -(-features // lanes)
    tiles = -(-vectors // _most_vectors(target, lanes))
    per_tile = -(-vectors // tiles)
    is_exact = tiles * per_tile * lanes == features
    return _named(pattern.feature, tiles, per_tile, lanes, exact=is_exact)


def _most_vectors(target: Target, lanes: int) -> int:
    """Vectors of a tile at most."""
    return min(accumulators_of(target), LARGEST_TILE // lanes)


def _named(feature: str, tiles: int | None, vectors: int, lanes: int, *, exact: bool) -> _Nest:
    """Loops of one iteration are not made: `split` names those it makes by their position."""
    made = [name for name, count in (("tile", tiles), ("vector", vectors)) if count != 1]
    names = {name: f"{feature}_{position}" for position, name in enumerate([*made, "lane"])}
    if not made and exact:
        names["lane"] = feature
    tile, vector = names.get("tile", ""), names.get("vector", "")
    return _Nest(tiles, vectors, lanes, exact, tile, vector, names["lane"])


def _step(op: str, **args: Arg) -> Step:
    return Step(op, args)


def _tiles(pattern: SparseReduction, nest: _Nest, target: Target) -> Decision:
    """Loops tile, position, vector, lane."""
    steps: Trace = ()
    if nest.lane != pattern.feature:
        steps = (_step("split", loop=pattern.feature, factors=_factors(nest)),)
    if nest.tile:
        order = [loop for loop in (nest.tile, pattern.position, nest.vector, nest.lane) if loop]
        steps = (*steps, _step("reorder", loops=tuple(order)))
    tile = f"{counted(nest.vectors, 'vector')} of {nest.lanes} lanes"
    if pattern.features is None or nest.tiles is None:
        why = "their number is known at run time only, so every vector of a tile is masked"
        return Decision(f"features in tiles of {tile}", why, steps)
    vectors = counted(-(-pattern.features // nest.lanes), "vector")
    rest = "nothing is left over" if nest.exact else "what is left over in the last one is masked"
    return Decision(
        f"features in {counted(nest.tiles, 'tile')} of {tile}",
        f"{pattern.features} features of {pattern.dtype} fill {vectors}; a tile has "
        f"{_most_vectors(target, nest.lanes)} at most, half of the registers and {LARGEST_TILE} features; "
        f"tiles are alike, and {rest}",
        steps,
    )


def _factors(nest: _Nest) -> tuple[int | None, ...]:
    outer = [nest.tiles] if nest.tile else []
    return (*outer, *_in_tile(nest))


def _in_tile(nest: _Nest) -> tuple[int, ...]:
    """The extents of the loops over vectors and lanes."""
    return (nest.vectors, nest.lanes) if nest.vector else (nest.lanes,)


def _in_registers(pattern: SparseReduction, nest: _Nest) -> Decision:
    steps = _accumulated(pattern, nest.tile or pattern.row)
    if nest.lane != pattern.feature:
        copied = _step("split", loop=f"{pattern.feature}_c", factors=_in_tile(nest))
        steps = (*steps, copied)
    return Decision(
        f"a tile of row {pattern.row} in registers while its elements {pattern.position} pass by",
        "each element is read once for a tile, and the result is written once",
        steps,
    )


def _accumulated(pattern: SparseReduction, holder: str) -> Trace:
    """What is accumulated in one iteration of `holder` in a buffer of its own, which is copied."""
    copy = f"{pattern.block}_{pattern.output}_local"
    return (
        _step("cache_write", block=pattern.block, buffer=pattern.output, scope="local"),
        _step("reverse_compute_at", block=copy, loop=holder),
        _step("decompose_reduction", block=pattern.block, loop=pattern.position),
    )


def _vectors(pattern: SparseReduction, nest: _Nest) -> Decision:
    """The lanes and vectors of the block, of its init and of its copy."""
    copied = f"{pattern.feature}_c"
    copied_lane = copied
    if nest.lane != pattern.feature:
        copied_lane = f"{copied}_1" if nest.vector else f"{copied}_0"
    lanes = (nest.lane, f"{nest.lane}_init", copied_lane)
    steps = [_step("vectorize", loop=loop) for loop in lanes]
    if nest.vector:
        vectors = (nest.vector, f"{nest.vector}_init", f"{copied}_0")
        steps += [_step("unroll", loop=loop) for loop in vectors]
    return Decision(
        "lanes are those of a vector, and vectors of a tile are unrolled",
        "neighbouring features lie side by side, and a register is chosen when code is made",
        tuple(steps),
    )


def _several_tiles(nest: _Nest) -> tuple[Decision, ...]:
    """How tiles are gone through, where there are several."""
    if nest.tiles == 1:
        return ()
    if nest.exact or nest.tiles is None:
        return (Decision("a loop over tiles", "all are alike, and copies would only be more code"),)
    if nest.tiles > UNROLLED_TILES:
        why = f"only the last one needs masks, and more than {UNROLLED_TILES} copies would be too much code"
        apart = _step("annotate", name=nest.tile, key="last", value="apart")
        return (Decision("a loop over whole tiles, and the last one behind it", why, (apart,)),)
    why = f"only the last one needs masks then, and {UNROLLED_TILES} tiles are little code"
    return (Decision("tiles unrolled", why, (_step("unroll", loop=nest.tile),)),)


def _single_feature(pattern: SparseReduction) -> Decision:
    """One column: a dot product per row."""
    order = _step("reorder", loops=(pattern.feature, pattern.position))
    return Decision(
        f"the one feature of a row {pattern.row} in a register",
        "a single feature fills no vector; each row is a dot product",
        (order, *_accumulated(pattern, pattern.feature)),
    )


def _parallel(pattern: SparseReduction, vectors: int) -> Decision:
    return parallel_rows(pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=vectors)
