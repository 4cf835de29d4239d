"""Sparse attention, one head: softmax(Q K^T / sqrt(d)) V over the nonzeros of a pattern.

Q is m by d, K and V are n by d, row-major; the values of the pattern are not used.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy import sparse

from benchmarks.matrices import IN_CSR, MASKS
from benchmarks.operator_case import Array
from benchmarks.operators.problem import Problem
from benchmarks.operators.sddmm import sampled
from gossamer.cli.bench.baselines.attention import WEIGHT_ROUNDINGS, softmax


class Attention(Problem):
    """The pattern in CSR.

    >>> from benchmarks.matrices import matrix_of
    >>> tiny = matrix_of("tiny", sparse.csr_matrix(np.array([[0, 0, 2], [0, 0, 0]], np.float32)))
    >>> Attention(tiny, 4).least_work()  # a column, three ends of rows, three rows, two results
    Work(bytes=96, operations=16)
    """

    op = "attention"
    title = "sparse attention, CSR"
    matrices = (*IN_CSR, *MASKS)
    feature_sizes = (32, 128)
    threads = (2,)
    copies = (2, 2)

    @property
    def operations(self) -> int:
        """Two products for each nonzero and feature; the softmax is not counted."""
        return 4 * self.csr.nnz * self.features

    def make_operands(self) -> tuple[Array, ...]:
        rows, columns = self.csr.shape
        return (
            self.random(rows, self.features, seed=2),
            self.random(columns, self.features, seed=3),
            self.random(columns, self.features, seed=4),
        )

    def result_shape(self) -> tuple[int, ...]:
        return (self.csr.shape[0], self.features)

    def evaluate(self, matrix: sparse.csr_matrix, *operands: Array) -> Array:
        return attended(matrix, *operands)

    @cached_property
    def magnitude(self) -> Array:
        """The absolute error of a score (rounding of its sum) is the relative error of its weight and of
        the sum of the weights."""
        q, k, v = (operand.astype(np.float64) for operand in self.operands)
        scores = sampled(self.csr, q, k) * scale_of(q)
        weights = with_values(self.csr, softmax(scores, self.csr.indptr))
        sizes = sampled(self.csr, np.abs(q), np.abs(k)) * scale_of(q)
        largest = float(sizes.max(initial=0.0))
        return 2.0 * (1.0 + largest) * np.asarray(weights @ np.abs(v))

    def longest_sum(self) -> int:
        return self.features + self.longest_row() + WEIGHT_ROUNDINGS

    def stored_bytes(self) -> int:
        return self.csr.indices.nbytes + self.csr.indptr.nbytes

    def touched_bytes(self) -> int:
        rows = int(np.count_nonzero(np.diff(self.csr.indptr)))
        return (rows + 2 * self.touched_columns()) * self.features * self.dtype.itemsize


def attended(matrix: sparse.csr_matrix, q: Array, k: Array, v: Array) -> Array:
    """Compute attention with NumPy and SciPy, in the dtype of the arguments."""
    scores = sampled(matrix, q, k) * q.dtype.type(scale_of(q))
    return np.asarray(with_values(matrix, softmax(scores, matrix.indptr)) @ v)


def scale_of(q: Array) -> float:
    """Return the factor of the scores."""
    return 1.0 / math.sqrt(q.shape[1])


def with_values(matrix: sparse.csr_matrix, values: Array) -> sparse.csr_matrix:
    """Return the pattern with other values."""
    return sparse.csr_matrix((values, matrix.indices, matrix.indptr), shape=matrix.shape)
