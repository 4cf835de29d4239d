"""Sampled dense times dense: out[p] = sum over k of X[i, k] * Y[j, k] at the p-th nonzero (i, j).

X is m by K, Y is n by K, row-major; the values of the pattern are not used.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.matrices import IN_CSR
from benchmarks.operators.problem import Problem
from gossamer.cli.comparison.baselines.sddmm import prepare_sddmm
from gossamer_support.arrays import Array


class Sddmm(Problem):
    """The pattern in CSR.

    >>> from benchmarks.matrices import canonical_matrix
    >>> tiny = canonical_matrix("tiny", sparse.csr_matrix(np.array([[0, 0, 2], [0, 0, 0]], np.float32)))
    >>> Sddmm(tiny, 4).min_work()  # a column, three ends of rows, two rows, one result
    Work(bytes=52, operations=8)
    """

    op = "sddmm"
    title = "sampled dense times dense, CSR"
    color, marker = "#009e73", "square"
    matrices = IN_CSR
    feature_sizes = (16, 32, 64, 128, 256, 512)
    copies = (1, 1)

    def make_operands(self) -> tuple[Array, ...]:
        rows, columns = self.csr.shape
        return (
            self.random(rows, self.features, seed=2),
            self.random(columns, self.features, seed=3),
        )

    def result_shape(self) -> tuple[int, ...]:
        return (self.csr.nnz,)

    def evaluate(self, matrix: sparse.csr_matrix, *operands: Array) -> Array:
        return prepare_sddmm(sparse.csr_array(matrix), *operands)()

    def longest_sum(self) -> int:
        return self.features

    def stored_bytes(self) -> int:
        return self.csr.indices.nbytes + self.csr.indptr.nbytes

    def touched_bytes(self) -> int:
        rows = int(np.count_nonzero(np.diff(self.csr.indptr)))
        return (rows + self.touched_columns()) * self.features * self.dtype.itemsize
