"""BSR and SR-BCRS times dense, on machines that run grids of threads.

Each block row has a block of threads. Tensor cores multiply, if the machine has an intrinsic for the dtype of
the operands: a warp keeps a tile of the result in fragments while it reads all blocks of its row. Blocks are
staged in shared memory if the sizes are constants that fill tiles of instructions (`staged_blocks`);
otherwise the intrinsic reads them from memory. Operands of another dtype have a thread for each feature, with
the rows of a block one after the other.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.nodes import Module
from gossamer_machine import Grid
from gossamer_schedule.rules.decisions.grids.staged_blocks import (
    TILE_FEATURES,
    block_staging,
    multiply_staged_blocks,
)
from gossamer_schedule.rules.decisions.grids.strip_product import strip_product
from gossamer_schedule.rules.decisions.scalable_vectors.block_product import (
    BlockProduct,
    block_product,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


@schedule_rule(
    pattern=(
        "a sum of products of dense blocks of the fiber, or of groups of columns of a strip without unused "
        'slots, and rows of a dense matrix (`[IO, JO, II, JI, K]`, "SRSRS", in any order), on a machine that '
        "runs grids of threads"
    ),
    programs="BSR and SR-BCRS times a matrix (`cuda-mma-sp`)",
    schedule=(
        "all blocks of a block row by tensor cores, staged in shared memory if they fill tiles, or a thread "
        "for each feature"
    ),
    replaces_conversion=True,
    is_for_grids=True,
)
def grid_block_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a product with blocks; None for any other program, or on a CPU."""
    grid = context.machine.grid
    product = None if grid is None else block_product(module) or strip_product(module)
    if grid is None or product is None or product.sums.features == 0:
        return None
    trace, sums = context.new_trace(), product.sums
    intrinsics = dict(context.machine.block_products)
    reason = _reason_for_threads(product, intrinsics)
    staging = block_staging(product, grid) if reason is None else None
    if staging is not None:
        multiply_staged_blocks(trace, product, staging=staging, grid=grid)
        trace.decide(
            f"blocks and tiles of {staging.features} features in shared memory, in a pipeline of "
            f"{staging.stages} stages",
            "asynchronous copies bring the next blocks while tensor cores multiply, and sizes are constants "
            "that fill tiles of matrix instructions",
        )
    elif reason is None:
        _multiply(trace, product, grid=grid, intrinsic=intrinsics[product.operands])
    else:
        trace.reorder(sums.row, product.feature, sums.inner_row, sums.position, sums.inner_position)
        tiles, lane = trace.split(product.feature, factors=(None, grid.warp))
        trace.record.bind(loop=sums.row, thread="blockIdx.x")
        trace.record.bind(loop=tiles, thread="blockIdx.y")
        trace.record.bind(loop=lane, thread="threadIdx.x")
        trace.decide("a thread for each feature of a block row", reason)
    return PatternMatch(sums.text, trace)


def _reason_for_threads(product: BlockProduct, intrinsics: dict[str, str]) -> str | None:
    """Return why no intrinsic computes a product; None if one does."""
    sums = product.sums
    if product.operands not in intrinsics or SUM_DTYPES[product.stored_dtype] != sums.dtype:
        return (
            f"the machine multiplies blocks of {', '.join(intrinsics) or 'no dtype'} by tensor cores, with "
            f"sums of 32 bits, and these are {product.operands} with sums in {sums.dtype}"
        )
    if {0, 1}.intersection((sums.height, sums.width, sums.features)):
        return "a block has one row or column, or there is one feature"
    return None


def _multiply(trace: TraceBuilder, product: BlockProduct, *, grid: Grid, intrinsic: str) -> None:
    sums, feature = product.sums, product.feature
    trace.reorder(sums.row, sums.position, sums.inner_row, sums.inner_position, feature)
    tile = next((tile for tile in TILE_FEATURES if (sums.features or 1) % tile == 0), None)
    if tile is not None:
        tiles, feature = trace.split(feature, factors=(None, tile))
        trace.reorder(sums.row, tiles, sums.position, sums.inner_row, sums.inner_position, feature)
        trace.record.bind(loop=tiles, thread="blockIdx.y")
    trace.record.bind(loop=sums.row, thread="blockIdx.x")
    if product.has_init:
        init = trace.decompose_reduction(
            sums.block, loop=sums.position, elements=(sums.inner_row, feature)
        )
        _, lane = trace.split(init.loops[feature], factors=(None, grid.warp))
        trace.record.bind(loop=lane, thread="threadIdx.x")
    trace.sparse_tensorize(sums.block, loop=sums.position, intrinsic=intrinsic)
    trace.decide(
        f"the blocks of a block row by {intrinsic}",
        "an instruction of tensor cores multiplies a tile of a block; rows, columns and features that do not "
        "fill a tile are zeros",
    )
