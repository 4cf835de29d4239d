"""Sparse matrix times vector, y = A x."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.matrices import IN_CSR
from benchmarks.operators.problem import Problem
from gossamer_support.arrays import Array


class Spmv(Problem):
    """A in CSR."""

    op = "spmv"
    title = "sparse matrix times vector, CSR"
    color, marker = "#d55e00", "triangle"
    matrices = IN_CSR
    feature_sizes = (1,)
    dtypes = ("float32", "float64")
    copies = (1, 1)

    def make_operands(self) -> tuple[Array, ...]:
        return (self.random(self.csr.shape[1], seed=2),)

    def result_shape(self) -> tuple[int, ...]:
        return (self.csr.shape[0],)

    def evaluate(self, matrix: sparse.csr_matrix, *operands: Array) -> Array:
        return np.asarray(matrix @ operands[0])

    def longest_sum(self) -> int:
        return self.longest_row()

    def touched_bytes(self) -> int:
        return self.touched_columns() * self.dtype.itemsize
