"""Sums over blocks that are products with a dense matrix, as an intrinsic computes them."""

from __future__ import annotations

import msgspec

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.build import index_var
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Load, Module
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.rules.analysis.iterations import single_iteration
from gossamer_schedule.rules.analysis.outputs import may_reassociate, only_store
from gossamer_schedule.rules.analysis.product_factors import product_factors
from gossamer_schedule.rules.patterns.block_reduction import BlockReduction, block_reduction


class BlockProduct(msgspec.Struct, frozen=True):
    """`sums` of products `block[io, jo, ii, ji] * dense[..., k]`, where k is `feature`. Both factors are
    `operands`, a dtype, and may be converted to that of the output; or that is a precision to which they are
    rounded. They are stored in `stored_dtype`. `blocks` is the buffer of the blocks at the loop stage."""

    sums: BlockReduction
    feature: str
    operands: str
    stored_dtype: str
    blocks: str
    has_init: bool


def block_product(module: Module) -> BlockProduct | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program.

    >>> from gossamer_testkit import script
    >>> from gossamer_ir.script import parse_module
    >>> found = block_product(parse_module(script("bsr_spmm")))
    >>> found.operands, found.feature, found.has_init
    ('float32', 'f', True)
    """
    program, sums = single_iteration(module), block_reduction(module)
    if program is None or sums is None or sums.feature is None or sums.operand is None:
        return None
    _, iteration = program
    store = only_store(iteration)
    reduction = None if store is None else match_reduction(store)
    if reduction is None or reduction.op != "add" or not may_reassociate(iteration):
        return None
    factors = product_factors(reduction.value, dtype=sums.dtype)
    if factors is None:
        return None
    for block, dense in factors.orders:
        if _is_product(sums, block, dense=dense):
            blocks, has_init = data_name(block.buffer), bool(iteration.init)
            return BlockProduct(sums, sums.feature, factors.operands, block.dtype, blocks, has_init)
    return None


def _is_product(sums: BlockReduction, block: Load, *, dense: Load) -> bool:
    """Return whether two factors are an element of a block, and one of a dense matrix that does not depend on
    the row."""
    element = (sums.row, sums.position, sums.inner_row, sums.inner_position)
    is_block = block.indices == tuple(map(index_var, element))
    is_dense = data_name(dense.buffer) == sums.operand and sums.inner_row not in free_vars(dense)
    return is_block and is_dense
