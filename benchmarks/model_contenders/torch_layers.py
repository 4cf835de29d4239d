"""Models in plain PyTorch."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.model_contenders.model_steps import (
    Build,
    Forward,
    Tensors,
    csr_tensor,
    prepare_with,
)
from benchmarks.models.model_case import ModelCase, dense_mask


def _gcn(case: ModelCase, t: Tensors) -> Forward:
    """Multiply by the matrix in CSR after the weights."""
    matrix = csr_tensor(t)

    def forward() -> Any:
        hidden = torch.relu(torch.sparse.mm(matrix, t["x"] @ t["w1"]) + t["b1"])
        return torch.sparse.mm(matrix, hidden @ t["w2"]) + t["b2"]

    return forward


def _graphsage(case: ModelCase, t: Tensors) -> Forward:
    """Multiply by the matrix in CSR after the weights, since these have fewer columns than rows."""
    matrix = csr_tensor(t)

    def layer(x: Any, number: str) -> Any:
        received = torch.sparse.mm(matrix, x @ t[f"w{number}"])
        return received + t[f"b{number}"] + x @ t[f"w{number}_root"]

    return lambda: layer(torch.relu(layer(t["x"], "1")), "2")


def _rgcn(case: ModelCase, t: Tensors) -> Forward:
    """Multiply by the weights and a matrix of means of each relation."""
    parts = []
    nodes = len(t["x"])
    for number in range(case.sizes["relations"]):
        source, target = t["edge_index"][:, t["edge_type"] == number]
        values = 1 / torch.bincount(target, minlength=nodes)[target].float()
        matrix = torch.sparse_coo_tensor(torch.stack([target, source]), values, (nodes, nodes))
        parts.append(matrix.coalesce().to_sparse_csr())

    def forward() -> Any:
        output = torch.addmm(t["b"], t["x"], t["w_root"])
        for number, matrix in enumerate(parts):
            output = output + torch.sparse.mm(matrix, t["x"] @ t["weights"][number])
        return output

    return forward


def _attention(case: ModelCase, t: Tensors) -> Forward:
    """Attend with a dense mask."""
    mask = torch.from_numpy(dense_mask(case.arrays["indptr"], case.arrays["indices"]))
    return lambda: scaled_dot_product_attention(
        t["q"][None], t["k"][None], t["v"][None], attn_mask=mask
    )[0]


def _pruned_layer(case: ModelCase, t: Tensors) -> Forward:
    """Multiply the weights in CSR by the transposed tokens."""
    columns = case.sizes["columns"]
    return lambda: torch.sparse.mm(csr_tensor(t, columns), t["x"].t()).t() + t["b"]


def _convolution(case: ModelCase, t: Tensors) -> Forward:
    """Gather, multiply and scatter the pairs of each offset; that of the voxel itself has all of them."""
    starts = np.concatenate([[0], case.arrays["ends"]])
    parts = [t["pairs"][:, start:end] for start, end in pairwise(starts)]
    middle = len(parts) // 2

    def forward() -> Any:
        output = torch.addmm(t["b"], t["x"], t["weights"][middle])
        for number, (sources, targets) in enumerate(parts):
            if number != middle:
                products = t["x"].index_select(0, sources) @ t["weights"][number]
                output.index_add_(0, targets, products)
        return output

    return forward


BUILDERS: dict[str, Build] = {
    "gcn": _gcn,
    "graphsage": _graphsage,
    "rgcn": _rgcn,
    "attention": _attention,
    "pruned": _pruned_layer,
    "convolution": _convolution,
}
prepare = partial(prepare_with, BUILDERS)
