"""BSR times dense with outer products in matrix registers: one intrinsic multiplies all blocks of a row.

The intrinsic is the machine's. It keeps the sums of a tile of rows and features in registers while it reads
all blocks of a block row, and works for any number of rows, columns and features. Block rows run in parallel,
balanced by blocks.
"""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.scalable_vectors.block_product import (
    BlockProduct,
    block_product,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

MIN_TENSORIZED_ROWS = 8
"""Minimum rows of a block (counted for SME with 32 and 128 features: from vectors of 256 bits on, blocks of 8
take 0.65 times the instructions of multiply-adds of vectors, those of 4 about as many)."""

MIN_PRODUCT_BITS = {"float32": 256, "float16": 128}
"""Minimum bits of vectors of matrix registers, by the dtype of the operands. A register has as many rows as a
vector has lanes of float32 (counted for SME with blocks of 16: at 128, 256 and 512 bits 0.69, 1.4 and 2.5
times fewer instructions than with multiply-adds of vectors, with operands of float16 2.2, 4.3 and 6.1)."""

_WORK_PER_BLOCK_ROW = 1
"""Cost of a block row besides its blocks, in blocks: its results are read and written."""


@schedule_rule(
    pattern=(
        "a sum of products of dense blocks of the fiber and rows of a dense matrix "
        '(`[IO, JO, II, JI, K]`, "SRSRS", in any order), if the machine has an intrinsic for it'
    ),
    programs="BSR times a matrix, with blocks of 8 rows or more (`llvm-sve` with SME)",
    schedule="all blocks of a block row by outer products, with the sums in matrix registers",
    replaces_conversion=True,
    before={"block_spmm": "it matches fewer programs, which an intrinsic multiplies faster"},
)
def tensorized_block_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a product with blocks by an intrinsic; None for other programs and machines."""
    intrinsics = dict(context.machine.block_products)
    # Most machines have none, and need not look at the program.
    product = block_product(module) if intrinsics else None
    if product is None or product.operands not in intrinsics or not _fits(product):
        return None
    min_bits = MIN_PRODUCT_BITS.get(product.operands, 0)
    if context.machine.min_product_bits < min_bits:
        return None
    trace, sums = context.new_trace(), product.sums
    trace.reorder(sums.row, sums.position, sums.inner_row, sums.inner_position, product.feature)
    if product.has_init:
        _initialize(trace, product, lanes=context.machine.native_lanes(sums.dtype))
    lanes = context.machine.lanes(sums.dtype)
    vectors = (sums.width or 1) * -(-(sums.features or 1) // lanes)
    run_rows_in_parallel(
        trace, sums.row, before=sums.before, vectors=vectors, per_row=_WORK_PER_BLOCK_ROW
    )
    # After rows run in parallel: that they are distinct is proved for the loops that the intrinsic replaces.
    _multiply(trace, product, intrinsic=intrinsics[product.operands], min_bits=min_bits)
    return PatternMatch(sums.text, trace)


def _fits(product: BlockProduct) -> bool:
    """Return whether blocks have enough rows, and no loop has a single iteration, which `sparse_tensorize`
    would not match."""
    sums = product.sums
    sizes = (sums.height, sums.width, sums.features)
    is_high_enough = sums.height is None or sums.height >= MIN_TENSORIZED_ROWS
    return sums.dtype == "float32" and is_high_enough and not {0, 1}.intersection(sizes)


def _initialize(trace: TraceBuilder, product: BlockProduct, *, lanes: int | str) -> None:
    """Initialize the results of a block row in vectors, before its blocks are multiplied."""
    sums, feature = product.sums, product.feature
    init = trace.decompose_reduction(
        sums.block, loop=sums.position, elements=(sums.inner_row, feature)
    )
    made = init.loops[feature]
    trace.run_in_lanes(made, lanes=lanes)
    trace.decide(
        "results initialized in vectors",
        f"neighboring features {feature} are contiguous, and the intrinsic continues from them",
    )


def _multiply(trace: TraceBuilder, product: BlockProduct, *, intrinsic: str, min_bits: int) -> None:
    sums = product.sums
    trace.sparse_tensorize(sums.block, loop=sums.position, intrinsic=intrinsic)
    rows = "an unknown number of" if sums.height is None else str(sums.height)
    trace.decide(
        f"the blocks of a block row by {intrinsic}",
        f"the machine has matrix registers, to which an instruction adds the product of a column of a block "
        f"and a vector of features; blocks have {rows} rows, and it pays from {MIN_TENSORIZED_ROWS} on; with "
        f"{product.operands} it pays for vectors of {min_bits} bits or more in these registers",
    )
