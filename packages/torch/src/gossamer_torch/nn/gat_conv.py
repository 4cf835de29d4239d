"""The layer of graph attention networks."""

from __future__ import annotations

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import require_dense, require_tensor_shape
from gossamer_torch.nn.adjacency import Graph, adjacency_of, is_edge_index, with_self_loops
from gossamer_torch.nn.node_features import (
    Channels,
    NodeFeatures,
    channels_of_ends,
    features_of_ends,
)
from gossamer_torch.operators.edge_softmax import edge_softmax
from gossamer_torch.operators.spmm import spmm
from gossamer_torch.sparse_matrix import SparseMatrix


class GATConv(torch.nn.Module):
    """For each head, the mean of W x over the neighbors of a node, weighted by the softmax of the scores of
    its edges: LeakyReLU(a_src . W x_j + a_dst . W x_i) (Velickovic et al., ICLR 2018), with the arguments of
    PyG's layer.

    `forward` takes `x` (n by `in_channels`) and a graph: an edge index (2 by E) or an adjacency matrix (n by
    n), whose row i has the neighbors of i, and whose values are not used. It returns n by `heads` times
    `out_channels`, or n by `out_channels`, the mean over the heads, without `concat`. For a bipartite graph,
    `x` has the features of sources and targets, or None for these; then `size` has the numbers of both,
    `in_channels` may be two numbers, and the matrix is targets by sources.

    With `edge_dim`, `edge_attr` has the features of edges (E by `edge_dim`; of the elements of a matrix in
    the order of CSR), and scores have the term a_edge . W_edge e. `add_self_loops` gives each node one self
    loop, instead of those that the graph has. Its features are `fill_value`, or with "mean" the mean of those
    of the edges into the node. `dropout` drops weights of edges in training; `residual` adds a linear
    function of the features of targets. Gradients flow to `x`, `edge_attr` and the parameters.

    Raises `ArgumentError` (`layer.fill_value`: another one than those; `layer.options`: features of edges
    without `edge_dim`; `operand.kind`, `operand.shape`, `operand.dtype`, `operand.range`).

    >>> edges = torch.tensor([[0, 1, 2], [1, 2, 1]])
    >>> GATConv(16, 4, heads=2)(torch.ones(3, 16), edges).shape
    torch.Size([3, 8])
    >>> GATConv(16, 4, edge_dim=5)(torch.ones(3, 16), edges, torch.ones(3, 5)).shape
    torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: Channels,
        out_channels: int,
        heads: int = 1,
        *,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | str = "mean",
        bias: bool = True,
        residual: bool = False,
    ) -> None:
        super().__init__()
        _require_fill_value(fill_value)
        self.channels = channels_of_ends(in_channels)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.negative_slope, self.dropout = concat, negative_slope, dropout
        self.add_self_loops, self.edge_dim, self.fill_value = add_self_loops, edge_dim, fill_value
        width = heads * out_channels
        source, target = self.channels
        self.lin = self.lin_src = self.lin_dst = None
        if isinstance(in_channels, tuple):
            self.lin_src = _linear(source, width)
            self.lin_dst = _linear(target, width)
        else:
            self.lin = _linear(source, width)
        self.lin_edge = None if edge_dim is None else _linear(edge_dim, width)
        shape = (1, heads, out_channels)
        self.att_src = torch.nn.Parameter(torch.empty(shape))
        self.att_dst = torch.nn.Parameter(torch.empty(shape))
        self.att_edge = None if edge_dim is None else torch.nn.Parameter(torch.empty(shape))
        outputs = width if concat else out_channels
        self.res = _linear(target, outputs) if residual else None
        self.bias = torch.nn.Parameter(torch.zeros(outputs)) if bias else None
        self.reset_parameters()

    @property
    def source_linear(self) -> torch.nn.Linear:
        """The linear function of the features of sources: that of all nodes, unless they have their own."""
        linear = self.lin if self.lin_src is None else self.lin_src
        assert linear is not None
        return linear

    @property
    def target_linear(self) -> torch.nn.Linear:
        """The linear function of the features of targets: that of all nodes, unless they have their own."""
        linear = self.lin if self.lin_dst is None else self.lin_dst
        assert linear is not None
        return linear

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio do; the bias is zero."""
        for name, parameter in self.named_parameters():
            if name == "bias":
                torch.nn.init.zeros_(parameter)
            else:
                torch.nn.init.xavier_uniform_(parameter)

    def forward(
        self,
        x: NodeFeatures,
        edge_index: Graph,
        edge_attr: torch.Tensor | None = None,
        size: tuple[int, int] | None = None,
    ) -> torch.Tensor:
        """Return the features of all nodes, or of all targets."""
        source, target, shape = features_of_ends(x, self.channels, edge_index, size)
        features = self._by_head(self.source_linear, source)
        matrix = self._edges_with_scores(edge_index, edge_attr, shape, features.dtype)
        scores = _scores_by_head(features, self.att_src).index_select(1, matrix.col)
        if target is not None:
            target_features = features
            if target is not source or self.target_linear is not self.source_linear:
                target_features = self._by_head(self.target_linear, target)
            scores = scores + _scores_by_head(target_features, self.att_dst).index_select(
                1, matrix.row_indices()
            )
        if edge_attr is not None:
            scores = scores + matrix.values
        activated = torch.nn.functional.leaky_relu(scores, self.negative_slope)
        weights = edge_softmax(matrix.with_values(activated))
        # Under autocast, features may be narrower than the scores.
        shares = weights.values.to(features.dtype)
        kept = torch.nn.functional.dropout(shares, self.dropout, self.training)
        received = spmm(weights.with_values(kept), features.transpose(0, 1))
        output = received.transpose(0, 1).flatten(1) if self.concat else received.mean(0)
        if self.res is not None and target is not None:
            output = output + self.res(target)
        return output if self.bias is None else output + self.bias

    def _by_head(self, linear: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = linear(x)
        return features.reshape(x.shape[0], self.heads, self.out_channels)

    def _edges_with_scores(
        self,
        graph: Graph,
        edge_attr: torch.Tensor | None,
        shape: tuple[int, int],
        dtype: torch.dtype,
    ) -> SparseMatrix:
        """Return the matrix of edges and self loops. Its values are the terms of the scores that come from
        the features of edges, for each head."""
        scores = None if edge_attr is None else self._scores_of_edges(edge_attr)
        if is_edge_index(graph):
            matrix = adjacency_of(graph, scores, shape, dtype)
        else:
            matrix = adjacency_of(graph, None, shape, dtype)
            matrix = matrix if scores is None else matrix.with_values(scores)
        if not self.add_self_loops:
            return matrix
        weights = matrix.values.new_zeros((*matrix.batch, min(shape)))
        if edge_attr is not None:
            weights = self._scores_of_loops(matrix, edge_attr)
        return with_self_loops(matrix, weights, replace=True)

    def _scores_of_edges(self, edge_attr: torch.Tensor) -> torch.Tensor:
        if self.lin_edge is None or self.att_edge is None:
            raise ArgumentError(
                "layer.options",
                "The edges have features; expected edge_attr=None.",
                hint="Pass edge_dim, the number of features, to GATConv.",
            )
        require_dense("edge_attr", edge_attr)
        require_tensor_shape("edge_attr", edge_attr, (None, self.edge_dim))
        return _scores_by_head(self._by_head(self.lin_edge, edge_attr), self.att_edge)

    def _scores_of_loops(self, matrix: SparseMatrix, edge_attr: torch.Tensor) -> torch.Tensor:
        """Return the scores of the features of self loops, of which those of edges are linear functions."""
        loops = min(matrix.shape)
        if not isinstance(self.fill_value, str):
            features = edge_attr.new_full((1, edge_attr.shape[1]), self.fill_value)
            return self._scores_of_edges(features).expand(-1, loops)
        is_counted = (matrix.row_indices() != matrix.col).to(matrix.dtype)
        ones = is_counted.new_ones((matrix.shape[1], 1))
        sums = spmm(matrix.with_values(matrix.values * is_counted), ones)
        counts = spmm(matrix.with_values(is_counted), ones)
        return (sums / counts.clamp(min=1))[:, :loops, 0]

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"


def _linear(inputs: int, outputs: int) -> torch.nn.Linear:
    return torch.nn.Linear(inputs, outputs, bias=False)


def _scores_by_head(features: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
    """Return the products of features with the vector of each head, by head; of nodes or of edges."""
    return (features * attention).sum(-1).t()


def _require_fill_value(fill_value: float | str) -> None:
    if isinstance(fill_value, str) and fill_value != "mean":
        raise ArgumentError(
            "layer.fill_value",
            f"The features of self loops are '{fill_value}'; expected 'mean' or a number.",
        )
