"""Products of blocks by tensor cores, from tiles that are staged in shared memory.

A warp has the sums of a block row for a tile of features in fragments. Asynchronous copies bring the next
blocks of the row, and the rows of the dense matrix that they need, to shared memory while it multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gossamer_ir.analysis.statements.async_copies import COPIED_BYTES
from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.nodes import Scope
from gossamer_machine import Grid
from gossamer_schedule.rules.decisions.scalable_vectors.block_product import BlockProduct
from gossamer_schedule.rules.steps.trace_builder import CacheNest, TraceBuilder

TILE_FEATURES = (64, 32, 16)
"""The features of a tile, if they divide all: small grids have many blocks."""
TILE_SIZE = 16
"""Rows of a block are a multiple of it: those of an instruction, from two loads of matrices."""
TILE_ROW_BITS = 256
"""The bits of a row of the left operand of an instruction: columns of a block fill whole ones."""
MAX_FRAGMENT_SUMS = 128
"""Sums in the registers of a thread, of which it has 255: operands and addresses need the others."""
PIPELINE_STAGES = (3, 2)
"""Blocks that are copied or multiplied at a time: the third hides more of the latency of memory."""


class BlockStaging(NamedTuple):
    """The features of a tile, the numbers of rows and columns of a block, and the stages of the pipeline."""

    features: int
    height: int
    width: int
    stages: int


def block_staging(product: BlockProduct, grid: Grid) -> BlockStaging | None:
    """Return how a product is staged; None if its sizes are symbolic, do not fill tiles of matrix
    instructions, or need more registers or shared memory than there are."""
    sums = product.sums
    if sums.height is None or sums.width is None or not sums.features or not product.has_init:
        return None
    if sums.height % TILE_SIZE or sums.width % tile_depth(product.stored_dtype):
        return None
    for features in TILE_FEATURES:
        if sums.features % features or sums.height * features > MAX_FRAGMENT_SUMS * grid.warp:
            continue
        elements = sums.height * sums.width + sums.width * features
        size = elements * SCALARS[product.stored_dtype].bits // 8
        for stages in PIPELINE_STAGES:
            if stages * size <= grid.shared_memory:
                return BlockStaging(features, sums.height, sums.width, stages)
    return None


def tile_depth(dtype: str) -> int:
    """Return the columns of the left operand of an instruction, for operands of a dtype.

    >>> tile_depth("float16"), tile_depth("int8")
    (16, 32)
    """
    return TILE_ROW_BITS // SCALARS[dtype].bits


class _TileLoops(NamedTuple):
    """The loops over tiles of features, if there are several, over the features of a tile, and over tiles of
    the columns of a block."""

    tiles: str | None
    feature: str
    depth: str


def multiply_staged_blocks(
    trace: TraceBuilder, product: BlockProduct, *, staging: BlockStaging, grid: Grid
) -> None:
    """Schedule a product: blocks of one warp for block rows and tiles of features."""
    sums = product.sums
    loops = _split_into_tiles(trace, product, staging=staging)
    shared = _caches(trace, product, scope="shared")
    fragments = _caches(trace, product, scope="fragment", of=shared)
    _accumulate_in_fragment(trace, product, loops=loops)
    # Consumers first: a copy moves to a loop that contains all uses of what it fills.
    for copy in reversed(fragments):
        trace.record.compute_at(copy.block, loop=loops.depth)
    for copy in reversed(shared):
        trace.record.compute_at(copy.block, loop=sums.position)
    trace.record.pipeline(sums.position, stages=staging.stages)
    trace.record.bind(sums.row, thread="blockIdx.x")
    if loops.tiles is not None:
        trace.record.bind(loops.tiles, thread="blockIdx.y")
    for copy, elements in zip(shared, _elements(product), strict=True):
        inner = [copy.loops[name] for name in elements[2:]]
        copy_by_threads(trace, inner, dtype=product.stored_dtype, grid=grid)


def _split_into_tiles(
    trace: TraceBuilder, product: BlockProduct, *, staging: BlockStaging
) -> _TileLoops:
    """Split loops into those over tiles, and the others, which are innermost."""
    sums, tiles, feature = product.sums, None, product.feature
    depth, inner_position = sums.position, sums.inner_position
    if sums.features != staging.features:
        tiles, feature = trace.split(feature, factors=(None, staging.features))
    tile = tile_depth(product.stored_dtype)
    if staging.width != tile:
        depth, inner_position = trace.split(inner_position, factors=(None, tile))
    outer = dict.fromkeys((sums.row, tiles, sums.position, depth))
    trace.reorder(*outer, sums.inner_row, inner_position, feature)
    return _TileLoops(tiles, feature, depth)


def _elements(product: BlockProduct) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the loops that select an element of a block, and of the dense matrix."""
    sums = product.sums
    row = (sums.row, sums.position)
    return (
        (*row, sums.inner_row, sums.inner_position),
        (*row, sums.inner_position, product.feature),
    )


def _caches(
    trace: TraceBuilder, product: BlockProduct, *, scope: Scope, of: Sequence[CacheNest] = ()
) -> list[CacheNest]:
    """Let products read caches of the blocks and of the dense matrix, or of the caches of these."""
    sums = product.sums
    assert sums.operand is not None, "the pattern has a dense operand"
    buffers = [cached.buffer for cached in of] or [product.blocks, sums.operand]
    return [
        trace.cache_read(
            sums.block, buffer=buffer, scope=scope, elements=elements, over_iters=not of
        )
        for buffer, elements in zip(buffers, _elements(product), strict=True)
    ]


def _accumulate_in_fragment(
    trace: TraceBuilder, product: BlockProduct, *, loops: _TileLoops
) -> None:
    sums = product.sums
    written = trace.cache_write(
        sums.block,
        buffer=sums.output,
        scope="fragment",
        elements=(sums.row, sums.inner_row, product.feature),
    )
    trace.record.reverse_compute_at(written.block, loop=loops.tiles or sums.row)
    trace.decompose_reduction(
        sums.block, loop=sums.position, elements=(sums.inner_row, loops.feature)
    )


def copy_by_threads(trace: TraceBuilder, loops: Sequence[str], *, dtype: str, grid: Grid) -> None:
    """Distribute a copy over the threads of a warp, each with as many elements as it copies at once."""
    lanes = max(COPIED_BYTES) * 8 // SCALARS[dtype].bits
    _, thread, lane = trace.split(trace.fuse(*loops), factors=(None, grid.warp, lanes))
    trace.record.bind(thread, thread="threadIdx.x")
    trace.vectorize(lane)
