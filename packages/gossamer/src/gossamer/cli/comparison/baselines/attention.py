"""The baseline of `attention`: sampled products, a softmax of each row, and SciPy's product.

It checks the results of the operator, so it shares no code with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gossamer.cli.comparison.baselines.baseline import Baseline, Calculation, RoundingBound
from gossamer.cli.comparison.baselines.sddmm import prepare_sddmm, sddmm_bound
from gossamer_formats import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WEIGHT_ROUNDINGS = 8
"""Roundings of an attention weight that do not depend on sizes: exp, its argument, two sums, quotient."""


def prepare_attention(matrix: csr_array, queries: Array, keys: Array, values: Array) -> Calculation:
    """Return a function that computes sampled products, a softmax of each row, and a sparse product."""
    weights = matrix.astype(queries.dtype)
    scores = prepare_sddmm(matrix, queries, keys)
    scale = queries.dtype.type(_scale(queries))

    def attention() -> Array:
        weights.data = softmax(scores() * scale, weights.indptr)
        product: Array = weights @ values
        return product

    return attention


def attention_bound(matrix: csr_array, queries: Array, keys: Array, values: Array) -> RoundingBound:
    """Return the bound of attention.

    The error of a score is the rounding error of its sum, relative to the sum of the absolute values of its
    terms. It is also the relative error of its weight, and bounds that of the sum of the weights.
    """
    score_sums = sddmm_bound(matrix, queries, keys).magnitude * _scale(queries)
    largest = np.zeros((matrix.shape[0], 1))
    np.maximum.at(largest, matrix.tocoo().row, score_sums[:, None])
    weighted = prepare_attention(matrix, queries, keys, np.abs(values))()
    terms = queries.shape[1] + np.diff(matrix.indptr) + WEIGHT_ROUNDINGS
    return RoundingBound(2.0 * (1.0 + largest) * weighted, terms.reshape(-1, 1))


def softmax(scores: Array, indptr: Array) -> Array:
    """Return the weights of the scores: their softmax, row by row.

    >>> softmax(np.array([2.0, 2.0, 5.0]), np.array([0, 2, 2, 3]))
    array([0.5, 0.5, 1. ])
    """
    lengths = np.diff(indptr)
    starts, stored = indptr[:-1][lengths > 0], lengths[lengths > 0]
    if not len(stored):
        return scores
    powers = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), stored))
    weights: Array = powers / np.repeat(np.add.reduceat(powers, starts), stored)
    return weights


def _scale(queries: Array) -> float:
    return 1.0 / math.sqrt(max(1, queries.shape[1]))


BASELINE = Baseline(
    "the products of sampled elements, a softmax of rows in NumPy, and SciPy's product",
    prepare_attention,
    attention_bound,
    operands=("rows", "columns", "columns"),
)
