"""The layer of relational graph convolutional networks."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import (
    INDEX_TENSOR_DTYPES,
    require_dense,
    require_indices,
    require_tensor_shape,
)
from gossamer_torch.conversion import from_edge_index
from gossamer_torch.custom_ops.registration import torch_operator
from gossamer_torch.kept_results import ResultKey, copy_with_results, kept_contents
from gossamer_torch.nn.node_features import (
    Channels,
    NodeFeatures,
    channels_of_ends,
    features_of_ends,
    reduction_of_neighbors,
)
from gossamer_torch.nn.propagation import add_to_product, product_with_bias
from gossamer_torch.operators.gather_multiply_scatter import gather_multiply_scatter
from gossamer_torch.operators.spmm import spmm
from gossamer_torch.sparse_matrix import SparseMatrix, matrix_of_checked


class RelationPairs(NamedTuple):
    """The pairs of a node and a relation by which it receives, sorted by relation: the matrix that aggregates
    for each pair, the nodes of pairs, and where those of each relation begin."""

    matrix: SparseMatrix
    nodes: torch.Tensor
    offsets: torch.Tensor


class RGCNConv(torch.nn.Module):
    """W_root x + b plus, for each relation, W_r times the mean of the features of its neighbors
    (Schlichtkrull et al., ESWC 2018), with the arguments of PyG's layer.

    `forward` takes `x` (n by `in_channels`), `edge_index` (2 by E, from sources to targets) and `edge_type`
    (E, from 0 to `num_relations` - 1), or the `relation_pairs` of both; it returns n by `out_channels`.
    For a bipartite graph, `x` has the features of sources and targets, and `in_channels` may be two numbers.
    `aggr` is "mean", "sum" (or "add"), "max" or "min". With `num_bases`, the weights of relations are sums of
    that many matrices; with `num_blocks`, they have that many blocks on the diagonal and are zero elsewhere.
    Neighbors are aggregated for each pair of a node and a relation before they are multiplied, so that each
    relation is one product of dense matrices. Gradients flow to `x` and the parameters.

    Raises `ArgumentError` (`layer.aggregation`, `layer.options`: arguments that exclude each other or do not
    fit; `operand.kind`, `operand.shape`, `operand.dtype`, `operand.range`).

    >>> edges, relations = torch.tensor([[0, 1, 2], [1, 2, 1]]), torch.tensor([0, 1, 1])
    >>> RGCNConv(16, 4, num_relations=2)(torch.ones(3, 16), edges, relations).shape
    torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: Channels,
        out_channels: int,
        num_relations: int,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        *,
        aggr: str = "mean",
        root_weight: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.reduction = reduction_of_neighbors(aggr)
        self.channels = channels_of_ends(in_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.num_relations, self.num_bases, self.aggr = num_relations, num_bases, aggr
        self.num_blocks = num_blocks
        source, target = self.channels
        _require_blocks(num_bases, num_blocks, (source, out_channels))
        blocks = num_blocks or 1
        matrices = num_relations if num_bases is None else num_bases
        divided = () if num_blocks is None else (num_blocks,)
        shape = (matrices, *divided, source // blocks, out_channels // blocks)
        self.weight = torch.nn.Parameter(torch.empty(shape))
        bases = torch.empty(num_relations, num_bases or 0)
        self.comp = None if num_bases is None else torch.nn.Parameter(bases)
        root = torch.empty(target, out_channels)
        self.root = torch.nn.Parameter(root) if root_weight else None
        self.bias = torch.nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio do; the bias is zero."""
        for weight in (*self.weight.flatten(0, -3), self.root, self.comp):
            if weight is not None:
                torch.nn.init.xavier_uniform_(weight.data)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(
        self,
        x: NodeFeatures,
        edge_index: torch.Tensor | RelationPairs,
        edge_type: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the features of all nodes, or of all targets."""
        if isinstance(x, tuple):
            # Neither edges nor pairs tell the number of targets.
            require_dense("x[1]", x[1])
        source, target, (targets, _) = features_of_ends(x, self.channels, edge_index)
        pairs = edge_index
        if not isinstance(pairs, RelationPairs):
            size = (source.shape[0], targets)
            pairs = relation_pairs(pairs, edge_type, size, self.num_relations)
        received = self._aggregate(pairs.matrix, source)
        output = self._sum_products(received, pairs, targets)
        if self.root is None or target is None:
            return output if self.bias is None else add_to_product(output, self.bias)
        return add_to_product(product_with_bias(target, self.root, self.bias), output)

    def _aggregate(self, matrix: SparseMatrix, x: torch.Tensor) -> torch.Tensor:
        """Return the aggregated features of each pair."""
        if self.reduction == "mean":
            return spmm(matrix.with_values(matrix.values.to(x.dtype)), x)
        ones = torch.ones_like(matrix.values, dtype=x.dtype)
        return spmm(matrix.with_values(ones), x, self.reduction)

    def _sum_products(
        self, received: torch.Tensor, pairs: RelationPairs, targets: int
    ) -> torch.Tensor:
        """Return the sums of the products of pairs with the weights of their relations."""
        weight: torch.Tensor = self.weight
        if self.comp is not None:
            weight = torch.einsum("rb,bio->rio", self.comp, weight)
        # Under autocast, a product of the parameters is narrower than the features.
        weight = weight.to(received.dtype)
        if self.num_blocks is None:
            return gather_multiply_scatter(
                received, weight, None, pairs.nodes, pairs.offsets, targets
            )
        parts = zip(received.chunk(self.num_blocks, 1), weight.unbind(1), strict=True)
        products = [
            gather_multiply_scatter(part, block, None, pairs.nodes, pairs.offsets, targets)
            for part, block in parts
        ]
        return torch.cat(products, dim=1)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, num_relations={self.num_relations}"


def relation_pairs(
    edge_index: torch.Tensor,
    edge_type: torch.Tensor | None,
    nodes: int | tuple[int, int],
    relations: int,
) -> RelationPairs:
    """Return the pairs of nodes and relations of a graph, made once for its tensors. `nodes` is the number of
    nodes; of a bipartite graph, those of sources and of targets."""
    require_dense("edge_index", edge_index, dtypes=INDEX_TENSOR_DTYPES)
    require_tensor_shape("edge_index", edge_index, (2, None))
    require_dense("edge_type", edge_type, dtypes=INDEX_TENSOR_DTYPES)
    assert edge_type is not None
    require_tensor_shape("edge_type", edge_type, (edge_index.shape[1],))
    sources, targets = nodes if isinstance(nodes, tuple) else (nodes, nodes)
    if torch.compiler.is_compiling():
        arrays = _arrays_of_pairs(edge_index, edge_type, sources, targets, relations)
        crow, col, values, pair_nodes, offsets = arrays
        matrix = matrix_of_checked(crow, col, values, (pair_nodes.shape[0], sources))
        return RelationPairs(matrix, pair_nodes, offsets)
    return _kept_pairs(edge_index, edge_type, (sources, targets), relations)


_PAIRS = ResultKey[RelationPairs]("the pairs of relations and nodes")


def _kept_pairs(
    edge_index: torch.Tensor, edge_type: torch.Tensor, size: tuple[int, int], relations: int
) -> RelationPairs:
    count_sources, count_targets = size

    def make() -> RelationPairs:
        require_indices("edge_type", edge_type, relations)
        sources, targets = edge_index.long()
        require_indices("edge_index[0]", sources, count_sources)
        require_indices("edge_index[1]", targets, count_targets)
        edge_keys = edge_type.long() * count_targets + targets
        keys, pair_of_edge = torch.unique(edge_keys, return_inverse=True)
        counts = torch.bincount(pair_of_edge, minlength=len(keys))
        edges = torch.stack([pair_of_edge, sources])
        values = 1 / counts.index_select(0, pair_of_edge).double()
        matrix = from_edge_index(edges, values, shape=(len(keys), count_sources))
        numbers = torch.arange(relations + 1, device=keys.device)
        offsets = torch.searchsorted(keys, numbers * count_targets)
        return RelationPairs(matrix, keys % max(count_targets, 1), offsets)

    return _PAIRS.get([edge_index, edge_type], make, options=(relations, size))


_Arrays: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""The tensors of a matrix of pairs, their nodes, and where those of each relation begin."""


def _new_arrays_of_pairs(
    edge_index: torch.Tensor, edge_type: torch.Tensor, sources: int, targets: int, relations: int
) -> _Arrays:
    pairs = torch.library.get_ctx().new_dynamic_size()
    edges = edge_index.shape[1]

    def numbers(length: int | torch.SymInt) -> torch.Tensor:
        return edge_index.new_empty(length, dtype=torch.int64)

    values = edge_index.new_empty(edges, dtype=torch.float64)
    return numbers(pairs + 1), numbers(edges), values, numbers(pairs), numbers(relations + 1)


@torch_operator("relation_pairs", new_result=_new_arrays_of_pairs, runs_anywhere=True)
def _arrays_of_pairs(
    edge_index: torch.Tensor, edge_type: torch.Tensor, sources: int, targets: int, relations: int
) -> _Arrays:
    """Return the tensors of relation pairs, for compiled graphs."""
    matrix, pair_nodes, offsets = _kept_pairs(
        kept_contents(edge_index), kept_contents(edge_type), (sources, targets), relations
    )
    kept = (matrix.crow, matrix.col, matrix.values, pair_nodes, offsets)
    crow, col, values, copied_nodes, copied_offsets = map(copy_with_results, kept)
    return crow, col, values, copied_nodes, copied_offsets


def _require_blocks(
    num_bases: int | None, num_blocks: int | None, channels: tuple[int, int]
) -> None:
    if num_blocks is None:
        return
    if num_bases is not None:
        raise ArgumentError(
            "layer.options", "There are 'num_bases' and 'num_blocks'; expected one of the two."
        )
    if num_blocks < 1 or any(number % num_blocks for number in channels):
        raise ArgumentError(
            "layer.options",
            f"'num_blocks' is {num_blocks}; expected a divisor of the numbers of features, {channels}.",
        )
