"""Attention of several heads in which a query attends to a band, or to the pattern of BigBird (Zaheer et al.,
NeurIPS 2020)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.matrices import load_matrix
from benchmarks.models.model_case import dense_mask
from benchmarks.models.model_problem import Arrays, ModelProblem, random_arrays
from gossamer_support.arrays import Array

MASKS = ("window_4096", "bigbird_4096")
HEADS, WIDTH = 8, 64


def attention_problem(mask: str) -> ModelProblem:
    """Return attention with queries, keys and values of the shape [heads, length, width]."""
    matrix = load_matrix(mask).csr
    shape = (HEADS, matrix.shape[0], WIDTH)
    arrays = random_arrays(13, q=shape, k=shape, v=shape, seed=shape)
    arrays |= {"indptr": matrix.indptr, "indices": matrix.indices}
    return ModelProblem("attention", mask, arrays, ("q", "k", "v"), attention_oracle)


def attention_oracle(arrays: Mapping[str, Array]) -> Arrays:
    """Return softmax(Q K^T / sqrt(d)) V over the mask for each head, and the gradients."""
    mask = dense_mask(arrays["indptr"], arrays["indices"])
    results: dict[str, list[Array]] = {"output": [], "q": [], "k": [], "v": []}
    scale = WIDTH**-0.5
    for q, k, v, seed in zip(*(arrays[name] for name in ("q", "k", "v", "seed")), strict=True):
        scores = np.where(mask, q @ k.T * scale, -np.inf)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        weight_gradients = seed @ v.T
        score_gradients = (
            weights
            * (weight_gradients - (weights * weight_gradients).sum(1, keepdims=True))
            * scale
        )
        results["output"].append(weights @ v)
        results["q"].append(score_gradients @ k)
        results["k"].append(score_gradients.T @ q)
        results["v"].append(weights.T @ seed)
    return {name: np.stack(parts) for name, parts in results.items()}
