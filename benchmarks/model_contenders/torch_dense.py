"""Pruned layers as dense ones, whose weights have zeros. The gradient of the weights is dense, as in a dense
layer; the values on the pattern are read from it for the comparison only."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.nn.functional import linear

from benchmarks.contenders.contender import Prepared
from benchmarks.model_contenders.model_steps import (
    csr_tensor,
    flat_result,
    inference_step,
    tensors_of,
    training_step,
)
from benchmarks.models.model_case import ModelCase


def prepare(case: ModelCase, threads: int) -> Prepared:
    """Prepare a pruned layer."""
    torch.set_num_threads(threads)
    t = tensors_of(case)
    weights = csr_tensor(t, case.sizes["columns"]).to_dense().detach().contiguous()
    weights.requires_grad_(case.is_training)

    def forward() -> Any:
        return linear(t["x"], weights, t["b"])

    leaves = [t["x"], weights, t["b"]]
    step = (
        training_step(forward, leaves, t["seed"]) if case.is_training else inference_step(forward)
    )
    rows = torch.repeat_interleave(torch.arange(len(weights)), t["indptr"].diff())

    def step_on_pattern() -> list[Any]:
        output, *gradients = step()
        if not gradients:
            return [output]
        x_gradient, weight_gradients, bias_gradient = gradients
        return [output, x_gradient, weight_gradients[rows, t["indices"].long()], bias_gradient]

    step()
    return Prepared(
        step, partial(torch.set_num_threads, threads), partial(flat_result, step_on_pattern)
    )
