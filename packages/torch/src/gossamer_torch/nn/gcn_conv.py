"""The layer of graph convolutional networks."""

from __future__ import annotations

import torch

from gossamer_torch.checks import require_dense, require_tensor_shape
from gossamer_torch.kept_results import ResultKey
from gossamer_torch.nn.adjacency import (
    Graph,
    adjacency_of,
    is_edge_index,
    symmetrically_normalized,
    with_own_values,
    with_self_loops,
)
from gossamer_torch.nn.node_features import channels_of_ends
from gossamer_torch.nn.propagation import Activation, Terms, propagate, weight_of
from gossamer_torch.sparse_matrix import SparseMatrix

_NORMALIZED = ResultKey[SparseMatrix]("the normalized matrix of a graph")


class GCNConv(torch.nn.Module):
    """D^-1/2 (A + I) D^-1/2 X W + b (Kipf and Welling, ICLR 2017), with the arguments of PyG's layer.

    `forward` takes `x` (n by `in_channels`), a graph, and with an edge index the weights of the edges (E); it
    returns n by `out_channels`. The graph is an edge index (2 by E) or the adjacency matrix (n by n), whose
    row i has the nodes from which i receives. `add_self_loops` (by default, if `normalize`) adds those that
    are missing, with weight 1, or 2 if `improved`. Pass a matrix that is normalized already with
    `normalize=False`. `cached` keeps the matrix of the first call, with its loops and normalized weights, for
    all calls until `reset_parameters`: later graphs are not read. `activation` is applied to the result;
    `torch.relu` is computed with the sums, without an array of its own. Gradients flow to `x`, the weights
    and the parameters.

    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> layer = GCNConv(16, 4)
    >>> layer(torch.ones(3, 16), edges).shape
    torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        improved: bool = False,
        cached: bool = False,
        add_self_loops: bool | None = None,
        normalize: bool = True,
        bias: bool = True,
        activation: Activation | None = None,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        channels_of_ends(in_channels)
        self.improved, self.cached = improved, cached
        self._cached_matrix: SparseMatrix | None = None
        self.add_self_loops = normalize if add_self_loops is None else add_self_loops
        self.normalize, self.activation = normalize, activation
        self.lin = torch.nn.Linear(in_channels, out_channels, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio do; the bias is zero. A cached matrix is dropped."""
        self._cached_matrix = None
        torch.nn.init.xavier_uniform_(self.lin.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(
        self, x: torch.Tensor, edge_index: Graph, edge_weight: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the features of all nodes."""
        require_dense("x", x)
        require_tensor_shape("x", x, (None, self.in_channels))
        matrix = self._matrix_of(edge_index, edge_weight, x)
        terms = Terms(weight_of(self.lin, x), self.bias)
        return propagate(matrix, x, terms, activation=self.activation)

    def _matrix_of(
        self, graph: Graph, edge_weight: torch.Tensor | None, x: torch.Tensor
    ) -> SparseMatrix:
        if self._cached_matrix is not None:
            return self._cached_matrix
        if edge_weight is not None:
            require_tensor_shape("edge_weight", edge_weight, (None,))
        shape = (x.shape[0], x.shape[0])

        def make() -> SparseMatrix:
            return self.propagation_matrix(adjacency_of(graph, edge_weight, shape, x.dtype))

        # A matrix of a derived layer may depend on all that it has.
        is_own = type(self).propagation_matrix is GCNConv.propagation_matrix
        is_kept = is_own and edge_weight is None and is_edge_index(graph) and self.normalize
        if is_kept and not torch.compiler.is_compiling():
            assert isinstance(graph, torch.Tensor)
            options = (shape, x.dtype, self.add_self_loops, self.improved)
            matrix = _NORMALIZED.get([graph], lambda: with_own_values(make()), options=options)
        else:
            matrix = make()
        if self.cached:
            self._cached_matrix = matrix
        return matrix

    def propagation_matrix(self, matrix: SparseMatrix) -> SparseMatrix:
        """Return the matrix with loops and normalized weights, as the options of the layer say."""
        if self.add_self_loops:
            weight = 2.0 if self.improved else 1.0
            matrix = with_self_loops(matrix, matrix.values.new_full((matrix.shape[0],), weight))
        return symmetrically_normalized(matrix) if self.normalize else matrix

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"
