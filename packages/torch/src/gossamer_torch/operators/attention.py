"""Sparse attention, with gradients: the fused kernel of `gossamer.attention` forward, its parts backward."""

from __future__ import annotations

import math
from typing import Any

import torch

import gossamer as gs
from gossamer_ir.support.typed_calls import typed
from gossamer_torch.batches import flattened_batch
from gossamer_torch.checks import require_dense, require_one_dtype, require_tensor_shape
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.numpy_views import dtype_name_of, shared_array
from gossamer_torch.operators.products import sampled_product, sparse_product
from gossamer_torch.operators.softmax import row_softmax, row_softmax_gradient
from gossamer_torch.patterns import kept_pattern
from gossamer_torch.program_dtypes import PROGRAM_DTYPES


@typed
def attention(
    pattern: SparseOperand,
    Q: torch.Tensor,
    K: torch.Tensor,
    V: torch.Tensor,
    scale: float | None = None,
) -> torch.Tensor:
    """Return softmax(scale * Q @ K.T) @ V, where the softmax of a row is over the elements that the pattern
    stores: the mask of `torch.nn.functional.scaled_dot_product_attention`, as a sparse matrix.

    Q is m by d for the m rows of the pattern, K and V are n by d for its n columns, all of one dtype of those
    of `spmm`; narrow ones are computed in float32. They may have further dimensions in front, such as batches
    and heads, which are the same for all three and for the result. `scale` is 1 / sqrt(d) by default. The
    values of the pattern are ignored. A row without stored elements gives zeros. Weights are not stored, but
    computed again for gradients, which flow to Q, K and V, any number of times.

    Raises `ArgumentError` (`operand.kind`, `operand.shape`, `operand.dtype`, `operand.device`).

    >>> mask = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).to_sparse_coo()
    >>> V = torch.tensor([[2.0], [4.0], [5.0]])
    >>> attention(mask, torch.zeros(2, 1), torch.zeros(3, 1), V)
    tensor([[3.],
            [5.]])
    """
    matrix = to_sparse_matrix(pattern)
    rows, columns = matrix.shape
    for name, dense in (("Q", Q), ("K", K), ("V", V)):
        require_dense(name, dense)
        require_one_dtype(name, dense, Q.dtype, like="'Q'")
    batch, features = Q.shape[:-2], Q.shape[-1] if Q.dim() else 0
    require_tensor_shape("Q", Q, (*batch, rows, None))
    for name, dense in (("K", K), ("V", V)):
        require_tensor_shape(name, dense, (*batch, columns, features))
    if Q.dtype not in PROGRAM_DTYPES:
        return attention(matrix, Q.float(), K.float(), V.float(), scale).to(Q.dtype)
    if scale is None:
        scale = 1.0 / math.sqrt(features or 1)
    flat = [flattened_batch(dense, 2) for dense in (Q, K, V)]
    product: torch.Tensor = batched_attention(*flat, matrix.crow, matrix.col, scale)
    return product.reshape(*batch, rows, features)


@torch.library.custom_op("gossamer::attention", mutates_args=(), device_types="cpu")
def batched_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Return the attention of each head."""
    matrix = kept_pattern(crow, col, keys.shape[1]).mask(dtype_name_of(queries))
    result = torch.empty(queries.shape, dtype=queries.dtype)
    # The operator refuses operands without elements.
    if result.numel():
        q, k, v = (shared_array(dense) for dense in (queries, keys, values))
        gs.attention(matrix, q, k, v, scale, out=result.numpy())
    return result


@batched_attention.register_fake
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    return torch.empty(queries.shape, dtype=queries.dtype, device=queries.device)


def _save_attention(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    *tensors, ctx.scale = inputs
    ctx.save_for_backward(*tensors)


def _attention_gradients(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    queries, keys, values, crow, col = ctx.saved_tensors
    columns = keys.shape[1]
    weights = row_softmax(ctx.scale * sampled_product(queries, keys, crow, col), crow, col, columns)
    of_weights = sampled_product(gradient, values, crow, col)
    of_scores = ctx.scale * row_softmax_gradient(weights, of_weights, crow, col, columns)
    of_queries = sparse_product(of_scores, keys, crow, col, columns, transposed=False)
    of_keys = sparse_product(of_scores, queries, crow, col, columns, transposed=True)
    of_values = sparse_product(weights, gradient, crow, col, columns, transposed=True)
    return of_queries, of_keys, of_values, None, None, None


batched_attention.register_autograd(_attention_gradients, setup_context=_save_attention)
