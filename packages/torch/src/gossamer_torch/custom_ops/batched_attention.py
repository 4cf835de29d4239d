"""Sparse attention of a batch: the fused kernel of `gossamer.attention` forward, its parts backward."""

from __future__ import annotations

import torch

import gossamer as gs
from gossamer_torch.custom_ops.products import sampled_product, sparse_product
from gossamer_torch.custom_ops.registration import GradientsByName, new_like, torch_operator
from gossamer_torch.custom_ops.softmax import row_softmax, row_softmax_gradient
from gossamer_torch.numpy_views import dtype_name_of, shared_array
from gossamer_torch.patterns import kept_pattern


def _attention_gradients(
    gradient: torch.Tensor,
    needed: frozenset[str],
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    scale: float,
) -> GradientsByName:
    columns = keys.shape[1]
    weights = row_softmax(scale * sampled_product(queries, keys, crow, col), crow, col, columns)
    gradients = {}
    if "values" in needed:
        gradients["values"] = sparse_product(weights, gradient, crow, col, columns, transposed=True)
    if {"queries", "keys"} & needed:
        weight_gradients = sampled_product(gradient, values, crow, col)
        score_gradients = scale * row_softmax_gradient(
            weights, weight_gradients, crow, col, columns
        )
        for name, other, transposed in (("queries", keys, False), ("keys", queries, True)):
            if name in needed:
                gradients[name] = sparse_product(
                    score_gradients, other, crow, col, columns, transposed=transposed
                )
    return gradients


def _attention_on_device(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Return the attention of each head by three kernels on a GPU, which store the weights between them."""
    columns = keys.shape[1]
    weights = row_softmax(scale * sampled_product(queries, keys, crow, col), crow, col, columns)
    return sparse_product(weights, values, crow, col, columns, transposed=False)


@torch_operator(
    "attention",
    new_result=new_like("queries"),
    gradients=_attention_gradients,
    device_kernel=_attention_on_device,
)
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
    result = queries.new_empty(queries.shape)
    q, k, v = (shared_array(dense) for dense in (queries, keys, values))
    gs.attention(matrix, q, k, v, scale, out=result.numpy())
    return result
