"""Products of rows for the blocks of a sparse matrix, such as the scores of attention, by tensor cores.

A warp has a block row. It keeps the rows of the left matrix in shared memory, and asynchronous copies bring
the rows of the right one for the next blocks while matrix instructions multiply those for a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.core.dtypes import SCALARS, SUM_DTYPES
from gossamer_ir.nodes import Module
from gossamer_machine import Grid
from gossamer_schedule.rules.decisions.grids.staged_blocks import (
    MAX_FRAGMENT_SUMS,
    PIPELINE_STAGES,
    TILE_SIZE,
    copy_by_threads,
    tile_depth,
)
from gossamer_schedule.rules.patterns.sampled_block_products import (
    SampledBlockProducts,
    sampled_block_products,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


@schedule_rule(
    pattern=(
        "a sum over features of products of a row of a dense matrix for the block row, and one for the block "
        '(`[IO, JO, II, JI, K]`, "SSSSR"), if blocks and features fill tiles of matrix instructions'
    ),
    programs="scores of attention over the blocks of a mask in BSR (`cuda-mma-sp`)",
    schedule="a warp for each block row, by tensor cores from shared memory, which asynchronous copies fill",
    is_for_grids=True,
)
def grid_block_sddmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for such products; None for other programs and sizes, or without tensor cores."""
    grid = context.machine.grid
    products = None if grid is None else sampled_block_products(module)
    if grid is None or products is None:
        return None
    if products.operands not in dict(context.machine.block_products):
        return None
    stages = _stages(products, grid)
    if SUM_DTYPES[products.stored_dtype] != products.dtype or stages is None:
        return None
    trace = context.new_trace()
    _multiply(trace, products, grid=grid, stages=stages)
    trace.decide(
        f"the products of a block row by tensor cores, in a pipeline of {stages} stages",
        "sizes are constants that fill tiles of matrix instructions, and all rows of the right matrix that a "
        "block needs are read once",
    )
    return PatternMatch(products.text, trace)


def _stages(products: SampledBlockProducts, grid: Grid) -> int | None:
    """Return the stages of the pipeline; None if sizes are symbolic, do not fill tiles, or need more
    registers or shared memory than there are."""
    height, width, features = products.height, products.width, products.features
    if not height or not width or not features or height * width > MAX_FRAGMENT_SUMS * grid.warp:
        return None
    # A loop over tiles of features remains: the init runs before it.
    depth = tile_depth(products.stored_dtype)
    if height % TILE_SIZE or width % TILE_SIZE or features % depth or features == depth:
        return None
    row_bytes = features * SCALARS[products.stored_dtype].bits // 8
    for stages in PIPELINE_STAGES:
        if (height + stages * width) * row_bytes <= grid.shared_memory:
            return stages
    return None


def _multiply(
    trace: TraceBuilder, products: SampledBlockProducts, *, grid: Grid, stages: int
) -> None:
    row, position, feature = products.row, products.position, products.feature
    inner_row, inner_position = products.inner_row, products.inner_position
    tile, inner_feature = trace.split(feature, factors=(None, tile_depth(products.stored_dtype)))
    trace.reorder(row, position, tile, inner_row, inner_feature, inner_position)
    copies = _copies(trace, products, tile=tile)
    written = trace.cache_write(
        products.block,
        buffer=products.output,
        scope="fragment",
        elements=(row, position, inner_row, inner_position),
    )
    trace.record.reverse_compute_at(written.block, loop=position)
    trace.decompose_reduction(products.block, loop=tile, elements=(inner_row, inner_position))
    # Consumers first: a copy moves to a loop that contains all uses of what it fills.
    for block, loop, _ in reversed(copies):
        trace.record.compute_at(block, loop=loop)
    trace.record.pipeline(position, stages=stages)
    trace.record.bind(row, thread="blockIdx.x")
    for _, _, loops in copies:
        if loops:
            copy_by_threads(trace, loops, dtype=products.stored_dtype, grid=grid)


def _copies(
    trace: TraceBuilder, products: SampledBlockProducts, *, tile: str
) -> list[tuple[str, str, Sequence[str]]]:
    """Let products read fragments of the operands, which read shared memory. Return the blocks that copy, the
    loops to which they move, and for shared memory the loops of the copy."""
    row, position, feature = products.row, products.position, products.feature
    left_elements = (row, products.inner_row, feature)
    right_elements = (row, position, products.inner_position, feature)
    block = products.block
    right = trace.cache_read(
        block, buffer=products.right, scope="shared", elements=right_elements, over_iters=True
    )
    left = trace.cache_read(
        block, buffer=products.left, scope="shared", elements=left_elements, over_iters=True
    )
    left_tile = trace.cache_read(
        block, buffer=left.buffer, scope="fragment", elements=left_elements
    )
    right_tile = trace.cache_read(
        block,
        buffer=right.buffer,
        scope="fragment",
        elements=right_elements,
        over_iters=True,
        # A fragment of the right operand has features by columns.
        order=tuple(f"v{name}" for name in (position, feature, products.inner_position)),
    )
    return [
        (right.block, position, [right.loops[name] for name in right_elements[2:]]),
        (left.block, row, [left.loops[name] for name in left_elements[1:]]),
        (left_tile.block, tile, ()),
        (right_tile.block, tile, ()),
    ]
