"""Attention over a sparse mask."""

from __future__ import annotations

import torch

from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.nn.attention_masks import band_mask, bigbird_mask
from gossamer_torch.operators.attention import attention
from gossamer_torch.sparse_matrix import SparseMatrix


class SparseAttention(torch.nn.Module):
    """softmax(scale Q K^T) V over the elements that a mask stores: `scaled_dot_product_attention` of PyTorch
    without the other elements.

    `mask` is a sparse matrix in any form (L by S), whose values are not used. `forward` takes `query` (...,
    L, d), `key` and `value` (..., S, d), where the dimensions in front are batches and heads, and returns
    (..., L, d). `scale` is 1 / sqrt(d) by default. A query without elements gets zeros. The layer has no
    parameters; gradients flow to queries, keys and values.

    >>> layer = SparseAttention.band(6, reach=1)
    >>> query = torch.ones(2, 6, 4)
    >>> layer(query, query, query).shape, layer.nonzeros
    (torch.Size([2, 6, 4]), 16)
    """

    def __init__(self, mask: SparseOperand, *, scale: float | None = None) -> None:
        super().__init__()
        matrix = to_sparse_matrix(mask)
        self.shape, self.scale = matrix.shape, scale
        self.crow: torch.Tensor
        self.col: torch.Tensor
        # Copies: load_state_dict writes to buffers.
        self.register_buffer("crow", matrix.crow.clone())
        self.register_buffer("col", matrix.col.clone())

    @classmethod
    def band(cls, length: int, *, reach: int, scale: float | None = None) -> SparseAttention:
        """Return the layer in which position i attends to those from i - `reach` to i + `reach`."""
        return cls(band_mask(length, reach), scale=scale)

    @classmethod
    def bigbird(
        cls,
        length: int,
        *,
        reach: int,
        num_global: int,
        num_random: int,
        seed: int = 0,
        scale: float | None = None,
    ) -> SparseAttention:
        """Return the layer with the mask of BigBird (Zaheer et al., NeurIPS 2020): a band, the first
        positions, which attend to all and to which all attend, and random positions for each query."""
        mask = bigbird_mask(
            length, reach=reach, num_global=num_global, num_random=num_random, seed=seed
        )
        return cls(mask, scale=scale)

    @property
    def nonzeros(self) -> int:
        """The number of elements of the mask."""
        return self.col.shape[0]

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Return the values that the queries attend to."""
        ones = query.new_ones(self.nonzeros)
        mask = SparseMatrix(self.crow, self.col, ones, shape=self.shape)
        return attention(mask, query, key, value, self.scale)

    def extra_repr(self) -> str:
        rows, columns = self.shape
        return f"{rows}, {columns}, nonzeros={self.nonzeros}"
