"""Sparse times dense: a row of the output stays in vector registers while its nonzeros pass by.

Features are cut into tiles of as many vectors as registers hold; within a tile every nonzero is read
once, and its row of the dense operand is accumulated with one fused multiply-add per vector. Rows
run in parallel, balanced by nonzeros. CSR, ELL, DCSR and ragged rows are all alike here.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.contracts import Arg, Schedule, Stats, Step, Target, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.gathers import (
    gathered_operand,
    operand_bytes,
    prefetch_rows,
    row_bytes,
)
from gossamer_schedule.rules.machine import accumulators_of, grain, lanes_of
from gossamer_schedule.rules.patterns import (
    SparseReduction,
    parallel_rows,
    single_iteration,
    sparse_reduction,
)

SYMBOLIC_VECTORS = 4
"""Vectors per tile where the number of features is known at run time only: all are masked."""

UNROLLED_TILES = 4
"""As many tiles are unrolled where the last one is partial, so that only its masks remain."""

LEAST_ROW, LEAST_OPERAND = 512, 2 << 20
"""Bytes of a gathered row from which asking for it costs less than waiting, and bytes of the operand
from which there is something to wait for (measured: 1.2 to 1.4 times faster, and 0.85 on less)."""

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


def sparse_times_dense(module: Module, target: Target, stats: Stats | None) -> Schedule | None:
    """The schedule for a reduction over fibres with a feature loop; None for anything else."""
    pattern = sparse_reduction(module)
    if pattern is None or not pattern.feature or pattern.features == 0:
        return None
    if not pattern.is_regular:
        return Schedule(loop=(_parallel(pattern, 1),))
    if pattern.features == 1:
        return Schedule(loop=_single_feature(pattern))
    nest = _nest(pattern, target)
    ahead = _prefetched(module, pattern, stats)
    work = nest.vectors * (nest.tiles or 1)
    vectors = _vectorized(pattern, nest)
    return Schedule(loop=(*_tiled(pattern, nest), *vectors, *ahead, _parallel(pattern, work)))


def _prefetched(module: Module, pattern: SparseReduction, stats: Stats | None) -> Trace:
    """The step that asks for rows of the dense operand, where that pays."""
    found = single_iteration(module)
    row = row_bytes(pattern.features, pattern.dtype)
    if found is None or row < LEAST_ROW or operand_bytes(stats, row) < LEAST_OPERAND:
        return ()
    operand = gathered_operand(*found, column=pattern.position, feature=pattern.feature)
    return (prefetch_rows(pattern.block, operand, loop=pattern.position),) if operand else ()


def _nest(pattern: SparseReduction, target: Target) -> _Nest:
    lanes = lanes_of(target, pattern.dtype)
    features = pattern.features
    if features is None:
        return _named(pattern.feature, None, SYMBOLIC_VECTORS, lanes, exact=False)
    while lanes // 2 >= features:
        lanes //= 2
    vectors = -(-features // lanes)
    tiles = -(-vectors // accumulators_of(target))
    per_tile = -(-vectors // tiles)
    is_exact = tiles * per_tile * lanes == features
    return _named(pattern.feature, tiles, per_tile, lanes, exact=is_exact)


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


def _tiled(pattern: SparseReduction, nest: _Nest) -> Trace:
    """Loops tile, position, vector, lane; the tile of the output in registers."""
    block, feature = pattern.block, pattern.feature
    copy = f"{block}_{pattern.output}_local"
    steps = [
        _step("cache_write", block=block, buffer=pattern.output, scope="local"),
        _step("reverse_compute_at", block=copy, loop=nest.tile or pattern.row),
        _step("decompose_reduction", block=block, loop=pattern.position),
    ]
    if nest.tile:
        order = [loop for loop in (nest.tile, pattern.position, nest.vector, nest.lane) if loop]
        steps.insert(0, _step("reorder", loops=tuple(order)))
    if nest.lane != feature:
        steps.insert(0, _step("split", loop=feature, factors=_factors(nest)))
    if nest.lane != feature:
        inner = (nest.vectors, nest.lanes) if nest.vector else (nest.lanes,)
        steps.append(_step("split", loop=f"{feature}_c", factors=inner))
    return tuple(steps)


def _factors(nest: _Nest) -> tuple[int | None, ...]:
    outer = [nest.tiles] if nest.tile else []
    return (*outer, *([nest.vectors] if nest.vector else []), nest.lanes)


def _vectorized(pattern: SparseReduction, nest: _Nest) -> Trace:
    copied = f"{pattern.feature}_c"
    copied_lane = copied
    if nest.lane != pattern.feature:
        copied_lane = f"{copied}_1" if nest.vector else f"{copied}_0"
    lanes = (nest.lane, f"{nest.lane}_init", copied_lane)
    steps = [_step("vectorize", loop=loop) for loop in lanes]
    if nest.vector:
        vectors = (nest.vector, f"{nest.vector}_init", f"{copied}_0")
        steps += [_step("unroll", loop=loop) for loop in vectors]
    if not nest.exact and nest.tiles is not None and 1 < nest.tiles <= UNROLLED_TILES:
        steps.append(_step("unroll", loop=nest.tile))
    return tuple(steps)


def _single_feature(pattern: SparseReduction) -> Trace:
    """One column: a dot product per row."""
    copy = f"{pattern.block}_{pattern.output}_local"
    return (
        _step("reorder", loops=(pattern.feature, pattern.position)),
        _step("cache_write", block=pattern.block, buffer=pattern.output, scope="local"),
        _step("reverse_compute_at", block=copy, loop=pattern.feature),
        _step("decompose_reduction", block=pattern.block, loop=pattern.position),
        _parallel(pattern, 1),
    )


def _parallel(pattern: SparseReduction, vectors: int) -> Step:
    return parallel_rows(pattern, grain(vectors), per_row=WORK_PER_ROW)
