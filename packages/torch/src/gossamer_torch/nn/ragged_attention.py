"""Multi-head attention within sequences of different lengths."""

from __future__ import annotations

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import INDEX_TENSOR_DTYPES, require_dense, require_tensor_shape
from gossamer_torch.kept_results import ResultKey
from gossamer_torch.nn.attention_masks import ragged_mask
from gossamer_torch.operators.attention import attention
from gossamer_torch.sparse_matrix import SparseMatrix

_MASK = ResultKey[SparseMatrix]("the mask of sequences")


class RaggedAttention(torch.nn.Module):
    """Multi-head self-attention (`torch.nn.MultiheadAttention`) over sequences of different lengths, one
    after the other without padding.

    `forward` takes `x` (positions of all sequences by `embed_dim`) and `offsets` (sequences + 1): sequence s
    has the rows from `offsets[s]` to `offsets[s + 1]` - 1 of `x`. Each position attends to those of its own
    sequence. It returns the shape of `x`. Gradients flow to `x` and the parameters.

    Raises `ArgumentError` (`layer.heads`: `embed_dim` is not a multiple of `num_heads`; `operand.shape`;
    `operand.range`: offsets do not rise from 0 to the number of positions).

    >>> layer = RaggedAttention(8, num_heads=2)
    >>> layer(torch.ones(5, 8), torch.tensor([0, 2, 5])).shape
    torch.Size([5, 8])
    """

    def __init__(self, embed_dim: int, num_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(
                "layer.heads",
                f"'embed_dim' is {embed_dim}; expected a multiple of {num_heads} (num_heads).",
            )
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.in_proj = torch.nn.Linear(embed_dim, 3 * embed_dim, bias=bias)
        self.out_proj = torch.nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Return the outputs."""
        require_dense("offsets", offsets, dtypes=INDEX_TENSOR_DTYPES)
        require_dense("x", x)
        require_tensor_shape("x", x, (None, self.embed_dim))
        mask = self._mask(offsets, x.shape[0])
        heads = self.in_proj(x).reshape(
            x.shape[0], 3, self.num_heads, self.embed_dim // self.num_heads
        )
        query, key, value = heads.permute(1, 2, 0, 3)
        ones = mask.values.to(x.dtype)
        attended = attention(mask.with_values(ones), query, key, value)
        joined: torch.Tensor = self.out_proj(attended.transpose(0, 1).reshape(x.shape))
        return joined

    def _mask(self, offsets: torch.Tensor, positions: int) -> SparseMatrix:
        """Return the mask, made once for the tensor of offsets."""

        def make() -> SparseMatrix:
            bounds = offsets.tolist()
            if not bounds or bounds[0] != 0 or bounds[-1] != positions or bounds != sorted(bounds):
                raise ArgumentError(
                    "operand.range",
                    f"'offsets' does not rise from 0 to {positions}, the number of rows of 'x'.",
                )
            return ragged_mask(offsets)

        return _MASK.get([offsets], make, options=(positions,))

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, num_heads={self.num_heads}"
