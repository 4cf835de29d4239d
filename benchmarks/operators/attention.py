"""Sparse attention, one head: softmax(Q K^T / sqrt(d)) V over the nonzeros of a pattern.

Q is m by d, K and V are n by d, row-major; the values of the pattern are not used.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from benchmarks.matrices import IN_CSR, MASKS
from benchmarks.operators.problem import Problem
from gossamer.cli.comparison.baselines.attention import attention_bound, prepare_attention
from gossamer.cli.comparison.baselines.baseline import RoundingBound
from gossamer_support.arrays import Array


class Attention(Problem):
    """The pattern in CSR.

    >>> from benchmarks.matrices import canonical_matrix
    >>> tiny = canonical_matrix("tiny", sparse.csr_matrix(np.array([[0, 0, 2], [0, 0, 0]], np.float32)))
    >>> Attention(tiny, 4).min_work()  # a column, three ends of rows, three rows, two results
    Work(bytes=96, operations=16)
    """

    op = "attention"
    title = "sparse attention, CSR"
    color, marker = "#e69f00", "pentagon"
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
        return prepare_attention(sparse.csr_array(matrix), *operands)()

    @cached_property
    def bound(self) -> RoundingBound:
        """The sums to which the rounding errors of scores, weights and products are relative, and their
        numbers of terms."""
        operands = [operand.astype(np.float64) for operand in self.operands]
        return attention_bound(sparse.csr_array(self.csr), *operands)

    @cached_property
    def magnitude(self) -> Array:
        return self.bound.magnitude

    def longest_sum(self) -> int:
        return int(self.bound.terms.max(initial=0))

    def stored_bytes(self) -> int:
        return self.csr.indices.nbytes + self.csr.indptr.nbytes

    def touched_bytes(self) -> int:
        rows = int(np.count_nonzero(np.diff(self.csr.indptr)))
        return (rows + 2 * self.touched_columns()) * self.features * self.dtype.itemsize
