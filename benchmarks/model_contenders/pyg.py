"""Models of PyTorch Geometric: from edges, compiled, or from a matrix in CSR."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch_geometric.nn import FastRGCNConv, GCNConv, RGCNConv, SAGEConv

from benchmarks.model_contenders.model_steps import (
    Build,
    Forward,
    Tensors,
    csr_tensor,
    edges_of,
    prepare_with,
    use,
)
from benchmarks.models.model_case import ModelCase


def _gcn(case: ModelCase, t: Tensors) -> Forward:
    """Use edges with weights that are normalized before."""
    edges, values = edges_of(t), t["values"]
    first, second = _gcn_layers(t)
    return lambda: second(torch.relu(first(t["x"], edges, values)), edges, values)


def _gcn_of_matrix(case: ModelCase, t: Tensors) -> Forward:
    """Use a matrix of normalized weights."""
    matrix = csr_tensor(t)
    first, second = _gcn_layers(t)
    return lambda: second(torch.relu(first(t["x"], matrix)), matrix)


def _gcn_layers(t: Tensors) -> tuple[Any, Any]:
    first, second = (GCNConv(*t[name].shape, normalize=False) for name in ("w1", "w2"))
    for layer, number in ((first, "1"), (second, "2")):
        use(layer.lin, weight=t[f"w{number}"].t())
        use(layer, bias=t[f"b{number}"])
    return first, second


def _graphsage(case: ModelCase, t: Tensors) -> Forward:
    """Use edges."""
    edges = edges_of(t)
    first, second = _sage_layers(t)
    return lambda: second(torch.relu(first(t["x"], edges)), edges)


def _graphsage_of_matrix(case: ModelCase, t: Tensors) -> Forward:
    """Use a matrix; the layer divides by the degrees."""
    ones = torch.ones_like(t["values"])
    matrix = csr_tensor({**t, **_indices_for_gradients_of_means(t), "values": ones})
    first, second = _sage_layers(t)
    return lambda: second(torch.relu(first(t["x"], matrix)), matrix)


def _indices_for_gradients_of_means(t: Tensors) -> Tensors:
    """Return the index arrays of the matrix of a case, in int64 if torch needs that.

    With indices in int32, torch 2.13 computes wrong gradients of means (`torch.sparse.mm` with "mean") of
    matrices with 2**31 places or more. PyG's edges are in int64, but smaller indices are faster.
    """
    names = ("indptr", "indices")
    is_large = (len(t["indptr"]) - 1) ** 2 > torch.iinfo(torch.int32).max
    return {name: t[name].long() if is_large else t[name] for name in names}


def _sage_layers(t: Tensors) -> tuple[Any, Any]:
    first, second = (SAGEConv(*t[name].shape) for name in ("w1", "w2"))
    for layer, number in ((first, "1"), (second, "2")):
        use(layer.lin_l, weight=t[f"w{number}"].t(), bias=t[f"b{number}"])
        use(layer.lin_r, weight=t[f"w{number}_root"].t())
    return first, second


def _rgcn(case: ModelCase, t: Tensors, layer_type: Any = RGCNConv) -> Forward:
    """Use edges with their relations."""
    channels = t["x"].shape[1]
    layer = layer_type(channels, channels, case.sizes["relations"])
    use(layer, weight=t["weights"], root=t["w_root"], bias=t["b"])
    return lambda: layer(t["x"], t["edge_index"], t["edge_type"])


BUILDERS: dict[str, Build] = {"gcn": _gcn, "graphsage": _graphsage, "rgcn": _rgcn}
OF_MATRIX: dict[str, Build] = {"gcn": _gcn_of_matrix, "graphsage": _graphsage_of_matrix}
prepare = partial(prepare_with, BUILDERS)
prepare_compiled = partial(prepare_with, BUILDERS, is_compiled=True)
prepare_matrix = partial(prepare_with, OF_MATRIX)
prepare_fast_rgcn = partial(prepare_with, {"rgcn": partial(_rgcn, layer_type=FastRGCNConv)})
