"""Block-sparse matrix times dense matrix, C = A B, with A in square blocks (BSR)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.matrices import BLOCKS
from benchmarks.operator_case import Array
from benchmarks.operators.problem import Problem


class BsrSpmm(Problem):
    """A in BSR; contenders without support for blocks get it in CSR."""

    op = "bsr_spmm"
    operator = "spmm"
    title = "block-sparse matrix times dense matrix, BSR"
    color, marker = "#cc79a7", "diamond"
    matrices = BLOCKS
    feature_sizes = (32, 128, 512)
    threads = (2,)
    copies = (1, 1)

    @property
    def bsr(self) -> sparse.bsr_matrix:
        """The matrix with its blocks."""
        assert self.matrix.bsr is not None, f"{self.matrix.name} has no blocks"
        return self.matrix.bsr

    def make_operands(self) -> tuple[Array, ...]:
        return (self.random(self.csr.shape[1], self.features, seed=2),)

    def result_shape(self) -> tuple[int, ...]:
        return (self.csr.shape[0], self.features)

    def evaluate(self, matrix: sparse.csr_matrix, *operands: Array) -> Array:
        return np.asarray(matrix @ operands[0])

    def longest_sum(self) -> int:
        return self.longest_row()

    def stored_bytes(self) -> int:
        return self.bsr.data.nbytes + self.bsr.indices.nbytes + self.bsr.indptr.nbytes

    def touched_bytes(self) -> int:
        return self.touched_columns() * self.features * self.dtype.itemsize
