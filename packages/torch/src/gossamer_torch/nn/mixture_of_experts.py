"""A feed-forward layer that sends each token to a few of many experts."""

from __future__ import annotations

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import require_dense, require_tensor_shape
from gossamer_torch.operators.gather_multiply_scatter import gather_multiply_scatter


class MixtureOfExperts(torch.nn.Module):
    """The sum over the `top_k` experts of a token of their share times W2 relu(W1 x), where shares are the
    softmax of their scores in the product with `router` (Shazeer et al., ICLR 2017).

    `forward` takes `x` (..., `in_features`) and returns (..., `out_features`). Tokens are sorted by expert,
    so that each expert is two products of dense matrices, whatever the number of its tokens. Gradients flow
    to `x`, the weights of the experts and the router.

    Raises `ArgumentError` (`layer.experts`: `top_k` is not from 1 to `num_experts`; `operand.shape`).

    >>> layer = MixtureOfExperts(8, 32, 8, num_experts=4, top_k=2)
    >>> layer(torch.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        out_features: int,
        *,
        num_experts: int,
        top_k: int = 2,
    ) -> None:
        super().__init__()
        if not 1 <= top_k <= num_experts:
            raise ArgumentError(
                "layer.experts",
                f"'top_k' is {top_k}; expected a number from 1 to {num_experts} (num_experts).",
            )
        self.in_features, self.out_features = in_features, out_features
        self.num_experts, self.top_k = num_experts, top_k
        self.router = torch.nn.Linear(in_features, num_experts, bias=False)
        first = torch.empty(num_experts, in_features, hidden_features)
        second = torch.empty(num_experts, hidden_features, out_features)
        self.weight1, self.weight2 = torch.nn.Parameter(first), torch.nn.Parameter(second)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights of each expert as Glorot and Bengio do, and the router as `torch.nn.Linear`."""
        self.router.reset_parameters()
        for weight in (*self.weight1, *self.weight2):
            torch.nn.init.xavier_uniform_(weight.data)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the outputs."""
        require_dense("x", x)
        leading = max(x.dim() - 1, 0)
        require_tensor_shape("x", x, (*(None,) * leading, self.in_features))
        tokens = x.reshape(-1, self.in_features)
        scores, experts = self.router(tokens).topk(self.top_k, dim=1)
        shares = scores.softmax(1).reshape(-1)
        order = torch.argsort(experts.reshape(-1), stable=True)
        counts = torch.zeros(self.num_experts, dtype=torch.int64, device=order.device)
        counts = counts.index_add(0, experts.reshape(-1), torch.ones_like(order))
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        token_of_product = order // self.top_k
        hidden = gather_multiply_scatter(
            tokens, self.weight1, token_of_product, None, offsets, len(order)
        )
        # A share may be multiplied before the second product, which is linear.
        hidden = torch.relu(hidden) * shares.index_select(0, order)[:, None]
        output = gather_multiply_scatter(
            hidden, self.weight2, None, token_of_product, offsets, len(tokens)
        )
        return output.reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, num_experts={self.num_experts}, "
            f"top_k={self.top_k}"
        )
