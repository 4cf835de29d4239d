"""Sparse matrix times dense matrix, C = A B: B is n by K, C is m by K, row-major."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse

from benchmarks.matrices import IN_CSR
from benchmarks.operators.problem import Marker, Problem
from gossamer_support.arrays import Array


class Spmm(Problem):
    """A in CSR.

    >>> from benchmarks.matrices import canonical_matrix
    >>> tiny = canonical_matrix("tiny", sparse.csr_matrix(np.array([[1, 0, 2], [0, 0, 3]], np.float32)))
    >>> Spmm(tiny, 4).min_work()  # 3 * 8 + 3 * 4 + 2 * 16 + 2 * 16
    Work(bytes=100, operations=24)
    """

    op = "spmm"
    title = "sparse matrix times dense matrix, CSR"
    color = "#0072b2"
    marker: ClassVar[Marker] = "circle"
    matrices: ClassVar[tuple[str, ...]] = IN_CSR
    feature_sizes: ClassVar[tuple[int, ...]] = (16, 32, 64, 128, 256, 512, 1024)
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    copies = (1, 1)

    def make_operands(self) -> tuple[Array, ...]:
        return (self.random(self.csr.shape[1], self.features, seed=2),)

    def result_shape(self) -> tuple[int, ...]:
        return (self.csr.shape[0], self.features)

    def evaluate(self, matrix: sparse.csr_matrix, *operands: Array) -> Array:
        return np.asarray(matrix @ operands[0])

    def longest_sum(self) -> int:
        return self.longest_row()

    def touched_bytes(self) -> int:
        return self.touched_columns() * self.features * self.dtype.itemsize
