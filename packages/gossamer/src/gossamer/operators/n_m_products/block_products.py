"""Products with an N:M matrix in dense blocks, on machines that multiply those faster."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.operator_calls.operands.n_m_matrix import n_m_matrix, required_operands
from gossamer.operators.n_m_products.forms import choose_form_on_grid
from gossamer.operators.spmm import spmm
from gossamer.targets.resolve_target import machine_for
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import MemoKey
from gossamer_heuristics.n_m_tiles import ProductSizes
from gossamer_ir.interchange.records import Target
from gossamer_tune.internal_api import block_size

_BLOCKS = MemoKey[SparseTensor]("the matrix in dense blocks for products")


def product_in_blocks(
    A: Any,
    B: Array,
    operand_dtype: str | None,
    *,
    out: Array | None,
    target: str | Target,
) -> Array | None:
    """Return the product of a tensor in dense blocks; None if the kernel for N:M is expected to be faster, or
    for other operands."""
    if not isinstance(A, SparseTensor) or not isinstance(B, np.ndarray):
        return None
    stored = _tensor_in_blocks(A, B, operand_dtype, target=target)
    return None if stored is None else spmm(stored, B, out=out, target=target)


def _tensor_in_blocks(
    tensor: SparseTensor, dense: Array, operand_dtype: str | None, *, target: str | Target
) -> SparseTensor | None:
    """Return a tensor in dense blocks if their product is expected to be faster than that of the kernel for
    N:M. None also for operands whose numbers of dimensions are wrong: that kernel reports the error."""
    machine = machine_for(target)
    if machine.grid is None or dense.ndim != 2 or tensor.ndim != 2:
        return None
    dtype = required_operands(operand_dtype, tensor.value_dtype)
    rows, columns = tensor.shape
    sizes = ProductSizes(rows, columns, dense.shape[1])
    form = choose_form_on_grid(dtype, sizes, machine=machine).form
    block = None if form == "kernel" else block_size(dtype, sizes)
    if block is None:
        return None
    # A matrix without the pattern is refused, whatever the form of its product.
    n_m_matrix(tensor)
    return _BLOCKS.get(
        tensor,
        lambda stored: stored.asformat("bsr", block_rows=block.rows, block_columns=block.columns),
    )
