"""Tiles of an output that stay in vector registers while the terms of a sum are added.

Rules for products with a dense matrix have the same skeleton. The loop over features becomes tiles of vectors
of lanes. A tile is accumulated in a local buffer, in three nests: its init before the loop over terms, its
updates, and the copy to the output. The lanes of all three are vectorized, their vectors and rows unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from gossamer_ir.nodes import Scope
from gossamer_schedule.rules.steps.trace_builder import PartialResults, RegionCopy, TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorLoops, VectorTiles


class Accumulated(Protocol):
    """A pattern whose block accumulates an output of features, with names of the loop stage."""

    @property
    def block(self) -> str:
        """The block."""
        ...

    @property
    def output(self) -> str:
        """The buffer that the block writes."""
        ...

    @property
    def feature(self) -> str | None:
        """The loop over features."""
        ...


class TileNest(NamedTuple):
    """The loops of a nest over a tile: over its rows (None: none, or not unrolled), and over its features."""

    row: str | None
    features: VectorLoops


class TileNests(msgspec.Struct, frozen=True):
    """The nests over a tile: its updates, its init, and the copy to the output by block `copy_block`."""

    update: TileNest
    init: TileNest
    copy: TileNest
    copy_block: str

    @property
    def all(self) -> tuple[TileNest, ...]:
        """The three nests."""
        return self.update, self.init, self.copy


def tile_around(
    trace: TraceBuilder, loop: str | None, tiles: VectorTiles, *, inner: Sequence[str]
) -> VectorLoops:
    """Split a loop into tiles of vectors. The loop over tiles, if there are several, runs around the loops
    `inner`, and its vectors inside of them."""
    loops = trace.split_in_vectors(loop, tiles)
    if loops.tile:
        trace.reorder(loops.tile, *inner, loops.vector, loops.lane)
    return loops


def accumulate_tile(
    trace: TraceBuilder,
    pattern: Accumulated,
    tiles: VectorTiles,
    *,
    update: TileNest,
    holder: str,
    reduction: str,
    row: str | None = None,
    over_iters: bool = False,
) -> TileNests:
    """Accumulate a tile in a local buffer during each iteration of loop `holder`, over the loop `reduction`.
    Return its nests.

    `row` is the loop over rows of `update` before it was split. The local buffer has the dimensions of the
    output, or one for each iterator of the block.
    """
    vectors = update.features
    init, copy = trace.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=holder,
        reduction=reduction,
        inside=(update.row, vectors.vector, vectors.lane),
        elements=(row, pattern.feature),
        over_iters=over_iters,
    )
    copied = VectorLoops(None, None, None)
    if vectors.lane:
        copied = trace.split_in_vectors(copy.loop(pattern.feature), tiles.single_tile)
    return TileNests(
        update,
        TileNest(init.loop(update.row), init.vectors(vectors)),
        TileNest(copy.loop(row) if update.row else None, copied),
        copy.block,
    )


def combine_in_registers(
    trace: TraceBuilder, pattern: Accumulated, partial: PartialResults, *, holder: str
) -> None:
    """Combine partial results at the end of each iteration of loop `holder`, from a local buffer."""
    trace.record.reverse_compute_at(block=pattern.block, loop=holder)
    trace.record.set_scope(buffer=partial.buffer, scope="local")


def partial_tile(
    trace: TraceBuilder,
    pattern: Accumulated,
    tiles: VectorTiles,
    *,
    partial: PartialResults,
    update: TileNest,
    reduction: str,
) -> TileNests:
    """Initialize a tile of partial results before the loop `reduction`. Return its nests; the last one
    combines it with the output."""
    vectors = update.features
    init = trace.decompose_reduction(
        partial.block, loop=reduction, elements=(update.row, vectors.vector, vectors.lane)
    )
    combined = trace.split_in_vectors(partial.combining.loop(pattern.feature), tiles.single_tile)
    return TileNests(
        update,
        TileNest(init.loop(update.row), init.vectors(vectors)),
        TileNest(partial.combining.loop(update.row), combined),
        pattern.block,
    )


def run_in_vectors(trace: TraceBuilder, nests: Iterable[TileNest]) -> None:
    """Vectorize the lanes of nests over a tile, and unroll their vectors and rows."""
    listed = tuple(nests)
    trace.vectorize(*(nest.features.lane for nest in listed))
    trace.unroll(*(nest.features.vector for nest in listed))
    trace.unroll(*(nest.row for nest in listed))


def copy_in_vectors(
    trace: TraceBuilder,
    block: str,
    tiles: VectorTiles,
    *,
    buffer: str,
    loop: str,
    scope: Scope,
    ndim: int,
) -> RegionCopy:
    """Copy the region of a buffer that a block reads in an iteration of a loop, the last dimension in
    vectors. Return the nest that copies."""
    copy = trace.cache_region(block, buffer=buffer, loop=loop, scope=scope, ndim=ndim)
    # A dimension of one element has no loop.
    if tiles.lanes == 1:
        return copy
    features = trace.split_in_vectors(copy.loops[-1], tiles.single_tile)
    run_in_vectors(trace, [TileNest(None, features)])
    return copy
