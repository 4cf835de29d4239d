"""Features of nodes: of one set, or of the sources and the targets of a bipartite graph."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import require_dense, require_tensor_shape
from gossamer_torch.conversion import to_sparse_matrix
from gossamer_torch.custom_ops.row_reductions import ReduceName
from gossamer_torch.nn.adjacency import Graph, is_edge_index

NodeFeatures: TypeAlias = torch.Tensor | tuple[torch.Tensor, torch.Tensor | None]
"""The features of all nodes, or those of the sources and, unless they are None, of the targets."""
Channels: TypeAlias = int | tuple[int, int]
"""The number of features of all nodes, or those of sources and of targets."""

_AGGREGATIONS: dict[str, ReduceName] = {
    "mean": "mean",
    "sum": "sum",
    "add": "sum",
    "max": "max",
    "min": "min",
}


class EndFeatures(NamedTuple):
    """The features of sources and targets, and the shape of the adjacency matrix: targets by sources."""

    source: torch.Tensor
    target: torch.Tensor | None
    shape: tuple[int, int]


def features_of_ends(
    x: NodeFeatures, channels: tuple[int, int], graph: Any, size: tuple[int, int] | None = None
) -> EndFeatures:
    """Return the features of both ends of edges. `size` has the numbers of sources and targets; that of
    targets without features is read from it, or from an adjacency matrix.

    Raises `ArgumentError` (`layer.options`: the number of targets is not known; `operand.kind`,
    `operand.shape`, `operand.dtype`).

    >>> edges = torch.tensor([[0, 1], [0, 0]])
    >>> features_of_ends((torch.ones(2, 3), torch.ones(1, 4)), (3, 4), edges).shape
    (1, 2)
    """
    source, target = x if isinstance(x, tuple) else (x, x)
    require_dense("x", source)
    require_tensor_shape("x", source, (None, channels[0]))
    if target is not None and isinstance(x, tuple):
        require_dense("x[1]", target)
        require_tensor_shape("x[1]", target, (None, channels[1]))
    targets = _count_targets(graph, size) if target is None else target.shape[0]
    if size is not None and size != (source.shape[0], targets):
        raise ArgumentError(
            "operand.shape",
            f"'size' is {size}, but there are features of {source.shape[0]} sources and {targets} targets.",
        )
    return EndFeatures(source, target, (targets, source.shape[0]))


def _count_targets(graph: Graph, size: tuple[int, int] | None) -> int:
    if size is not None:
        return size[1]
    if is_edge_index(graph):
        raise ArgumentError(
            "layer.options",
            "The number of targets is not known: they have no features, and the graph is an edge index.",
            hint="Pass size=(sources, targets), or an adjacency matrix.",
        )
    return to_sparse_matrix(graph).shape[0]


def channels_of_ends(in_channels: Channels) -> tuple[int, int]:
    """Return the numbers of features of sources and of targets.

    Raises `ArgumentError` (`operand.range`) for a number below 1, such as PyG's -1.

    >>> channels_of_ends(16)
    (16, 16)
    """
    source, target = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
    for channels in (source, target):
        if channels < 1:
            raise ArgumentError(
                "operand.range",
                f"'in_channels' contains {channels}; expected at least 1.",
                hint="Pass the number of features: it is not inferred from the first call.",
            )
    return source, target


def reduction_of_neighbors(aggr: str) -> ReduceName:
    """Return the reduction for the name of an aggregation. Raises `ArgumentError` (`layer.aggregation`).

    >>> reduction_of_neighbors("add")
    'sum'
    """
    if aggr not in _AGGREGATIONS:
        raise ArgumentError(
            "layer.aggregation",
            f"The aggregation is '{aggr}'; expected 'mean', 'sum', 'add', 'max' or 'min'.",
        )
    return _AGGREGATIONS[aggr]
