"""The layer of GraphSAGE."""

from __future__ import annotations

import torch

from gossamer_torch.custom_ops.row_reductions import ReduceName
from gossamer_torch.nn.adjacency import Graph, adjacency_of, row_means
from gossamer_torch.nn.node_features import (
    Channels,
    NodeFeatures,
    channels_of_ends,
    features_of_ends,
    reduction_of_neighbors,
)
from gossamer_torch.nn.propagation import Activation, Terms, propagate, weight_of
from gossamer_torch.sparse_matrix import SparseMatrix


class SAGEConv(torch.nn.Module):
    """W_l (mean of the features of the neighbors) + W_r x + b (Hamilton, Ying and Leskovec, NeurIPS 2017),
    with the arguments of PyG's layer.

    `forward` takes `x` (n by `in_channels`) and a graph, and returns n by `out_channels`. The graph is an
    edge index (2 by E) or an adjacency matrix (n by n), whose row i has the neighbors of i; its values are
    not used. For a bipartite graph, `x` has the features of sources and targets, or None for these; then
    `size` has the numbers of both, `in_channels` may be two numbers, and the matrix is targets by sources.

    `aggr` is "mean", "sum" (or "add"), "max" or "min"; nodes without neighbors receive 0. `project` applies
    a linear layer and ReLU to the features of neighbors first. `normalize` divides each row of the result by
    its norm. `activation` is applied last; `torch.relu` is computed with the sums, without an array of its
    own. Gradients flow to `x` and the parameters.

    Raises `ArgumentError` (`layer.aggregation`, `layer.options`: the number of targets is not known;
    `operand.kind`, `operand.shape`, `operand.dtype`, `operand.range`).

    >>> edges = torch.tensor([[0, 2], [1, 1]])
    >>> SAGEConv(16, 4)(torch.ones(3, 16), edges).shape
    torch.Size([3, 4])
    >>> SAGEConv((16, 8), 4, "max")((torch.ones(3, 16), torch.ones(2, 8)), edges).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        in_channels: Channels,
        out_channels: int,
        aggr: str = "mean",
        *,
        normalize: bool = False,
        root_weight: bool = True,
        project: bool = False,
        bias: bool = True,
        activation: Activation | None = None,
    ) -> None:
        super().__init__()
        self.reduction = reduction_of_neighbors(aggr)
        self.channels = channels_of_ends(in_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.aggr, self.normalize, self.root_weight = aggr, normalize, root_weight
        source, target = self.channels
        self.project, self.activation = project, activation
        self.lin = torch.nn.Linear(source, source) if project else None
        self.lin_l = torch.nn.Linear(source, out_channels, bias=bias)
        self.lin_r = torch.nn.Linear(target, out_channels, bias=False) if root_weight else None

    def reset_parameters(self) -> None:
        """Draw all parameters as `torch.nn.Linear` does."""
        for linear in (self.lin, self.lin_l, self.lin_r):
            if linear is not None:
                linear.reset_parameters()

    def forward(
        self, x: NodeFeatures, edge_index: Graph, size: tuple[int, int] | None = None
    ) -> torch.Tensor:
        """Return the features of all nodes, or of all targets."""
        source, target, shape = features_of_ends(x, self.channels, edge_index, size)
        matrix = adjacency_of(edge_index, None, shape, source.dtype)
        if self.lin is not None:
            source = torch.relu(self.lin(source))
        terms = Terms(weight_of(self.lin_l, source), self.lin_l.bias)
        if self.lin_r is not None and target is not None:
            is_source = target is x and self.lin is None
            root = weight_of(self.lin_r, target)
            terms = terms._replace(root_weight=root, target=None if is_source else target)
        matrix, reduction = self._aggregation(matrix, source)
        activation = None if self.normalize else self.activation
        output = propagate(matrix, source, terms, reduction=reduction, activation=activation)
        if not self.normalize:
            return output
        output = torch.nn.functional.normalize(output, dim=-1)
        return output if self.activation is None else self.activation(output)

    def _aggregation(
        self, matrix: SparseMatrix, source: torch.Tensor
    ) -> tuple[SparseMatrix, ReduceName]:
        """Return the matrix whose products with the features are reduced, and the reduction: a mean is a sum
        of products with shares."""
        if self.reduction == "mean":
            return row_means(matrix, source.dtype), "sum"
        return matrix.with_values(source.new_ones(matrix.nnz)), self.reduction

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, aggr={self.aggr!r}"
