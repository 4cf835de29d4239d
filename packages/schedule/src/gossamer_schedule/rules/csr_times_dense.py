"""CSR times dense: a row of the output stays in vector registers while its nonzeros pass by.

Features are cut into tiles of as many vectors as registers hold; within a tile every nonzero is read
once, and its row of the dense operand is accumulated with one fused multiply-add per vector. Rows
run in parallel, balanced by nonzeros.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.contracts import Arg, Schedule, Stats, Step, Target, Trace
from gossamer_schedule.rules.machine import accumulators_of, grain, lanes_of
from gossamer_schedule.rules.patterns import SparseReduction

SYMBOLIC_VECTORS = 4
"""Vectors per tile where the number of features is known at run time only: all are masked."""

UNROLLED_TILES = 4
"""As many tiles are unrolled where the last one is partial, so that only its masks remain."""

WORK_PER_ROW = 4
"""What a row costs besides its nonzeros, in nonzeros."""


class _Tiling(NamedTuple):
    """`tiles` (None: symbolic) of `vectors` vectors of `lanes`; exact: no lane is left over."""

    tiles: int | None
    vectors: int
    lanes: int
    exact: bool


def csr_times_dense(
    pattern: SparseReduction, target: Target, _stats: Stats | None
) -> Schedule | None:
    """The schedule for a pattern with a feature loop; None for one without."""
    if not pattern.feature or pattern.features == 0:
        return None
    if pattern.features == 1:
        return Schedule(loop=_single_feature(pattern))
    tiling = _tiling(pattern, target)
    return Schedule(loop=(*_tiled(pattern, tiling), *_vectorized(pattern, tiling)))


def _tiling(pattern: SparseReduction, target: Target) -> _Tiling:
    lanes = lanes_of(target, pattern.dtype)
    features = pattern.features
    if features is None:
        return _Tiling(None, SYMBOLIC_VECTORS, lanes, exact=False)
    while lanes // 2 >= features:
        lanes //= 2
    vectors = -(-features // lanes)
    tiles = -(-vectors // accumulators_of(target))
    per_tile = -(-vectors // tiles)
    return _Tiling(tiles, per_tile, lanes, exact=tiles * per_tile * lanes == features)


def _step(op: str, **args: Arg) -> Step:
    return Step(op, args)


def _tiled(pattern: SparseReduction, tiling: _Tiling) -> Trace:
    """Loops tile, position, vector, lane; the tile of the output in registers."""
    block, feature = pattern.block, pattern.feature
    tile, vector, lane = (f"{feature}_{level}" for level in range(3))
    copy = f"{block}_{pattern.output}_local"
    factors = (tiling.tiles, tiling.vectors, tiling.lanes)
    return (
        _step("split", loop=feature, factors=factors),
        _step("reorder", loops=(tile, pattern.position, vector, lane)),
        _step("cache_write", block=block, buffer=pattern.output, scope="local"),
        _step("reverse_compute_at", block=copy, loop=tile),
        _step("decompose_reduction", block=block, loop=pattern.position),
        _step("split", loop=f"{feature}_c", factors=(tiling.vectors, tiling.lanes)),
    )


def _vectorized(pattern: SparseReduction, tiling: _Tiling) -> Trace:
    feature = pattern.feature
    vectors = (f"{feature}_1", f"{feature}_1_init", f"{feature}_c_0")
    lanes = (f"{feature}_2", f"{feature}_2_init", f"{feature}_c_1")
    steps = [_step("vectorize", loop=loop) for loop in lanes]
    steps += [_step("unroll", loop=loop) for loop in vectors]
    if not tiling.exact and tiling.tiles is not None and 1 < tiling.tiles <= UNROLLED_TILES:
        steps.append(_step("unroll", loop=f"{feature}_0"))
    work = tiling.vectors * (tiling.tiles or 1)
    return (*steps, _parallel(pattern, work))


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
    weight = pattern.weight(WORK_PER_ROW)
    return _step("parallel", loop=pattern.row, weight=weight, grain=grain(vectors))
