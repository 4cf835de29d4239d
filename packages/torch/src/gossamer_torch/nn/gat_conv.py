"""The layer of graph attention networks."""

from __future__ import annotations

import torch

from gossamer_torch.nn.adjacency import Graph, adjacency_of, with_self_loops
from gossamer_torch.operators.edge_softmax import edge_softmax
from gossamer_torch.operators.spmm import spmm


class GATConv(torch.nn.Module):
    """For each head, the mean of W x over the neighbors of a node, weighted by the softmax of the scores of
    its edges: LeakyReLU(a_src . W x_j + a_dst . W x_i) (Velickovic et al., ICLR 2018), with the arguments of
    PyG's layer.

    `forward` takes `x` (n by `in_channels`) and a graph: an edge index (2 by E) or an adjacency matrix (n by
    n), whose row i has the neighbors of i, and whose values are not used. It returns n by `heads` times
    `out_channels`, or n by `out_channels`, the mean over the heads, without `concat`. `add_self_loops` adds
    those that are missing. `dropout` drops weights of edges in training. Gradients flow to `x` and the
    parameters.

    >>> edges = torch.tensor([[0, 1, 2], [1, 2, 1]])
    >>> GATConv(16, 4, heads=2)(torch.ones(3, 16), edges).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        *,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.negative_slope, self.dropout = concat, negative_slope, dropout
        self.add_self_loops = add_self_loops
        self.lin = torch.nn.Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        width = heads * out_channels if concat else out_channels
        self.bias = torch.nn.Parameter(torch.zeros(width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio do; the bias is zero."""
        for weight in (self.lin.weight, self.att_src, self.att_dst):
            torch.nn.init.xavier_uniform_(weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: torch.Tensor, edge_index: Graph) -> torch.Tensor:
        """Return the features of all nodes."""
        nodes = x.shape[0]
        matrix = adjacency_of(edge_index, None, (nodes, nodes), x.dtype)
        if self.add_self_loops:
            matrix = with_self_loops(matrix)
        features = self.lin(x).reshape(nodes, self.heads, self.out_channels)
        of_source = (features * self.att_src).sum(-1).t()
        of_target = (features * self.att_dst).sum(-1).t()
        scores = of_source.index_select(1, matrix.col) + of_target.index_select(1, matrix.rows())
        activated = torch.nn.functional.leaky_relu(scores, self.negative_slope)
        weights = edge_softmax(matrix.with_values(activated))
        # Under autocast, features may be narrower than the scores.
        shares = weights.values.to(features.dtype)
        kept = torch.nn.functional.dropout(shares, self.dropout, self.training)
        received = spmm(weights.with_values(kept), features.transpose(0, 1))
        joined = received.transpose(0, 1).flatten(1)
        output = joined if self.concat else received.mean(0)
        return output if self.bias is None else output + self.bias

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"
