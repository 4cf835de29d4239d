"""Sparse matrix times vector, y = A x."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.matrices import GRAPHS, MESHES, WEIGHTS
from benchmarks.operators.problem import Array, Problem


class Spmv(Problem):
    """A in CSR."""

    op = "spmv"
    title = "sparse matrix times vector, CSR"
    matrices = (*GRAPHS, *MESHES, *WEIGHTS)
    feature_sizes = (1,)

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
