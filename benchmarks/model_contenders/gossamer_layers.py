"""Models of `gossamer_torch.nn`: graphs are matrices, and what layers derive from them is made before."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from benchmarks.model_contenders.model_steps import Build, Forward, Tensors, prepare_with, use
from benchmarks.models.model_case import ModelCase
from gossamer_torch import SparseMatrix
from gossamer_torch.nn import (
    GCNConv,
    KernelMap,
    RGCNConv,
    SAGEConv,
    SparseAttention,
    SparseConv3d,
    SparseLinear,
    relation_pairs,
)


def _matrix_of(t: Tensors, columns: int | None = None) -> SparseMatrix:
    """Return the matrix of a case, square by default."""
    rows = len(t["indptr"]) - 1
    shape = (rows, rows if columns is None else columns)
    return SparseMatrix(t["indptr"], t["indices"], t.get("values"), shape=shape)


def _gcn(case: ModelCase, t: Tensors) -> Forward:
    """Use a matrix that is normalized before."""
    matrix = _matrix_of(t)
    first = GCNConv(*t["w1"].shape, normalize=False, activation=torch.relu)
    second = GCNConv(*t["w2"].shape, normalize=False)
    for layer, number in ((first, "1"), (second, "2")):
        use(layer.lin, weight=t[f"w{number}"].t())
        use(layer, bias=t[f"b{number}"])
    return lambda: second(first(t["x"], matrix), matrix)


def _graphsage(case: ModelCase, t: Tensors) -> Forward:
    """Use the pattern of the matrix."""
    matrix = _matrix_of(t)
    first = SAGEConv(*t["w1"].shape, activation=torch.relu)
    second = SAGEConv(*t["w2"].shape)
    for layer, number in ((first, "1"), (second, "2")):
        use(layer.lin_l, weight=t[f"w{number}"].t(), bias=t[f"b{number}"])
        use(layer.lin_r, weight=t[f"w{number}_root"].t())
    return lambda: second(first(t["x"], matrix), matrix)


def _rgcn(case: ModelCase, t: Tensors) -> Forward:
    """Use edges with their relations."""
    nodes, channels = t["x"].shape
    relations = case.sizes["relations"]
    layer = RGCNConv(channels, channels, relations)
    use(layer, weight=t["weights"], root=t["w_root"], bias=t["b"])
    pairs = relation_pairs(t["edge_index"], t["edge_type"], nodes, relations)
    return lambda: layer(t["x"], pairs)


def _attention(case: ModelCase, t: Tensors) -> Forward:
    """Attend over the pattern of the mask."""
    layer = SparseAttention(_matrix_of(t))
    return lambda: layer(t["q"], t["k"], t["v"])


def _pruned_layer(case: ModelCase, t: Tensors) -> Forward:
    """Use a layer with the pattern of the weights."""
    layer = SparseLinear(_matrix_of(t, case.sizes["columns"]), t["b"])
    use(layer, values=t["values"], bias=t["b"])
    if not case.is_training:
        layer.prepare(tokens=len(t["x"]))
    return lambda: layer(t["x"])


def _convolution(case: ModelCase, t: Tensors) -> Forward:
    """Use the pairs of the case, but those of the middle of the kernel."""
    layer = SparseConv3d(*t["weights"].shape[1:])
    use(layer, weight=t["weights"], bias=t["b"])
    pairs = _without_middle(t)
    return lambda: layer(t["x"], pairs)


def _without_middle(t: Tensors) -> KernelMap:
    """Return the products of a case, but those of voxels with themselves."""
    ends = t["ends"]
    middle = len(ends) // 2
    start, end = ends[middle - 1], ends[middle]
    sources, targets = (torch.cat([each[:start], each[end:]]) for each in t["pairs"])
    later = ends[middle + 1 :] - (end - start)
    offsets: Any = torch.cat([ends.new_zeros(1), ends[:middle], later])
    return KernelMap(sources, targets, offsets, len(t["x"]))


BUILDERS: dict[str, Build] = {
    "gcn": _gcn,
    "graphsage": _graphsage,
    "rgcn": _rgcn,
    "attention": _attention,
    "pruned": _pruned_layer,
    "convolution": _convolution,
}
prepare = partial(prepare_with, BUILDERS)
