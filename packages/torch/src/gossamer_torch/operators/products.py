"""The two products of sparse matrices as custom operators of torch, each in the gradient of the other.

The gradient of a matrix stays on its pattern: it is a sampled product (SDDMM). The gradient of a dense
operand is a product with the transposed matrix, whose pattern is made once: rows are computed in parallel,
and nothing is scattered. `gossamer.adjoint` of the programs gives the same gradients; the tests compare both.
"""

from __future__ import annotations

from typing import Any

import torch

import gossamer as gs
from gossamer_torch.batches import flattened_batch
from gossamer_torch.numpy_views import dtype_name_of, shared_array, tensor_of
from gossamer_torch.patterns import kept_pattern
from gossamer_torch.sparse_matrix import SparseMatrix


def product_with_dense(matrix: SparseMatrix, dense: torch.Tensor) -> torch.Tensor:
    """Return the product of a matrix with a dense matrix or vector; that of each matrix of a batch, which
    may have any dimensions, with one of three dimensions."""
    values = flattened_batch(matrix.values, 1) if matrix.batch else matrix.values
    product: torch.Tensor = sparse_product(
        values, dense, matrix.crow, matrix.col, matrix.shape[1], transposed=False
    )
    return product


@torch.library.custom_op("gossamer::spmm", mutates_args=(), device_types="cpu")
def sparse_product(
    values: torch.Tensor,
    dense: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
    *,
    transposed: bool,
) -> torch.Tensor:
    """Return the product of a matrix in CSR, or of its transposed matrix, with a dense matrix or vector; of
    each matrix of a batch if `values` has two dimensions."""
    pattern = kept_pattern(crow, col, columns)
    if values.dim() == 1:
        matrix = pattern.matrix(values, transposed=transposed)
        return tensor_of(gs.spmm(matrix, shared_array(dense)), dense.dtype)
    products = dense.new_empty(
        (len(dense), pattern.count_rows(transposed=transposed), dense.shape[-1])
    )
    for product, of_one, factor in zip(products, values, dense, strict=True):
        matrix = pattern.matrix(of_one, transposed=transposed)
        product.copy_(torch.from_numpy(gs.spmm(matrix, shared_array(factor))))
    return products


@sparse_product.register_fake
def _(
    values: torch.Tensor,
    dense: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
    *,
    transposed: bool,
) -> torch.Tensor:
    rows = columns if transposed else crow.shape[0] - 1
    if values.dim() == 1:
        return dense.new_empty((rows, *dense.shape[1:]))
    return dense.new_empty((dense.shape[0], rows, dense.shape[2]))


def _save_product(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: torch.Tensor
) -> None:
    values, dense, crow, col, ctx.columns = inputs
    ctx.transposed = keyword_only_inputs["transposed"]
    ctx.save_for_backward(values, dense, crow, col)


def _product_gradients(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """Return the gradients: that of the values is sampled at the pattern, that of the dense operand is a
    product with the transposed matrix."""
    values, dense, crow, col = ctx.saved_tensors
    of_values = of_dense = None
    if ctx.needs_input_grad[0]:
        left, right = (dense, gradient) if ctx.transposed else (gradient, dense)
        of_values = sampled_product(left, right, crow, col)
    if ctx.needs_input_grad[1]:
        of_dense = sparse_product(
            values, gradient, crow, col, ctx.columns, transposed=not ctx.transposed
        )
    return of_values, of_dense, None, None, None


sparse_product.register_autograd(_product_gradients, setup_context=_save_product)


@torch.library.custom_op("gossamer::sddmm", mutates_args=(), device_types="cpu")
def sampled_product(
    left: torch.Tensor, right: torch.Tensor, crow: torch.Tensor, col: torch.Tensor
) -> torch.Tensor:
    """Return for each element of a pattern the inner product of its row of `left` with its column's row of
    `right`; rows of vectors are numbers, and operands of three dimensions are batches."""
    pattern = kept_pattern(crow, col, right.shape[-2] if right.dim() > 1 else right.shape[0])
    matrix = pattern.mask(dtype_name_of(left))

    def samples(*rows: torch.Tensor) -> torch.Tensor:
        return tensor_of(gs.sddmm(matrix, *map(shared_array, rows)), left.dtype)

    if left.dim() == 1:
        return samples(left[:, None], right[:, None])
    if left.dim() == 2:
        return samples(left, right)
    batch = [samples(*rows) for rows in zip(left, right, strict=True)]
    return torch.stack(batch) if batch else left.new_empty((0, col.shape[0]))


@sampled_product.register_fake
def _(
    left: torch.Tensor, right: torch.Tensor, crow: torch.Tensor, col: torch.Tensor
) -> torch.Tensor:
    return left.new_empty((*left.shape[:-2], *col.shape))


def _save_samples(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _sample_gradients(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    left, right, crow, col = ctx.saved_tensors
    columns = right.shape[0] if right.dim() == 1 else right.shape[-2]
    of_left = of_right = None
    if ctx.needs_input_grad[0]:
        of_left = sparse_product(gradient, right, crow, col, columns, transposed=False)
    if ctx.needs_input_grad[1]:
        of_right = sparse_product(gradient, left, crow, col, columns, transposed=True)
    return of_left, of_right, None, None


sampled_product.register_autograd(_sample_gradients, setup_context=_save_samples)
