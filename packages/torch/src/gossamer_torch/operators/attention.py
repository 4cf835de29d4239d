"""Sparse attention, with gradients."""

from __future__ import annotations

import math

import torch

from gossamer_support.typed_calls import typed
from gossamer_torch.batches import flattened_batch
from gossamer_torch.checks import (
    require_dense,
    require_one_device,
    require_one_dtype,
    require_tensor_shape,
)
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.custom_ops.batched_attention import batched_attention
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
        require_one_device(name, dense, matrix.col.device, like="the matrix")
        require_one_dtype(name, dense, Q.dtype, like="'Q'")
    batch, features = Q.shape[:-2], Q.shape[-1] if Q.dim() else 0
    require_tensor_shape("Q", Q, (*batch, rows, None))
    for name, dense in (("K", K), ("V", V)):
        require_tensor_shape(name, dense, (*batch, columns, features))
    if Q.dtype not in PROGRAM_DTYPES:
        return attention(matrix, Q.float(), K.float(), V.float(), scale).to(Q.dtype)
    if scale is None:
        scale = 1.0 / math.sqrt(features or 1)
    queries, keys, values = (flattened_batch(dense, 2) for dense in (Q, K, V))
    product = batched_attention(queries, keys, values, matrix.crow, matrix.col, scale)
    return product.reshape(*batch, rows, features)
