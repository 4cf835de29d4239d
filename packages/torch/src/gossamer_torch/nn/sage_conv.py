"""The layer of GraphSAGE."""

from __future__ import annotations

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.nn.adjacency import Graph, adjacency_of, row_means
from gossamer_torch.nn.propagation import receives_first
from gossamer_torch.operators.spmm import spmm

AGGREGATIONS = ("mean", "sum")


class SAGEConv(torch.nn.Module):
    """W_l (mean of the features of the neighbors) + W_r x + b (Hamilton, Ying and Leskovec, NeurIPS 2017),
    with the arguments of PyG's layer.

    `forward` takes `x` (n by `in_channels`) and a graph, and returns n by `out_channels`. The graph is an
    edge index (2 by E) or an adjacency matrix (n by n), whose row i has the neighbors of i; its values are
    not used. `aggr` is "mean" or "sum"; nodes without neighbors receive 0. `normalize` divides each row of
    the result by its norm. Gradients flow to `x` and the parameters.

    Raises `ArgumentError` (`layer.aggregation`) for another aggregation.

    >>> edges = torch.tensor([[0, 2], [1, 1]])
    >>> SAGEConv(16, 4)(torch.ones(3, 16), edges).shape
    torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        aggr: str = "mean",
        *,
        normalize: bool = False,
        root_weight: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_aggregation(aggr)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.aggr, self.normalize, self.root_weight = aggr, normalize, root_weight
        self.lin_l = torch.nn.Linear(in_channels, out_channels, bias=bias)
        self.lin_r = torch.nn.Linear(in_channels, out_channels, bias=False) if root_weight else None

    def reset_parameters(self) -> None:
        """Draw all parameters as `torch.nn.Linear` does."""
        self.lin_l.reset_parameters()
        if self.lin_r is not None:
            self.lin_r.reset_parameters()

    def forward(self, x: torch.Tensor, edge_index: Graph) -> torch.Tensor:
        """Return the features of all nodes."""
        nodes = x.shape[0]
        matrix = adjacency_of(edge_index, None, (nodes, nodes), x.dtype)
        if self.aggr == "mean":
            matrix = row_means(matrix, x.dtype)
        else:
            matrix = matrix.with_values(x.new_ones(matrix.nnz))
        if receives_first(x, self.out_channels):
            output = self.lin_l(spmm(matrix, x))
        else:
            output = spmm(matrix, x @ self.lin_l.weight.t())
            if self.lin_l.bias is not None:
                output = output + self.lin_l.bias
        if self.lin_r is not None:
            output = torch.addmm(output, x, self.lin_r.weight.t())
        return torch.nn.functional.normalize(output, dim=-1) if self.normalize else output

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, aggr={self.aggr!r}"


def require_aggregation(aggr: str) -> None:
    """Raise `ArgumentError` unless neighbors can be aggregated so."""
    if aggr not in AGGREGATIONS:
        raise ArgumentError(
            "layer.aggregation",
            f"The aggregation is '{aggr}'; expected 'mean' or 'sum'.",
        )
