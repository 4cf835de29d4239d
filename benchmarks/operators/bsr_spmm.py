"""Block-sparse matrix times dense matrix, C = A B, with A in square blocks (BSR)."""

from __future__ import annotations

from scipy import sparse

from benchmarks.matrices import BLOCKS
from benchmarks.operators.problem import Problem
from benchmarks.operators.spmm import Spmm


class BsrSpmm(Spmm):
    """A in BSR; contenders without support for blocks get it in CSR."""

    op = "bsr_spmm"
    operator = "spmm"
    title = "block-sparse matrix times dense matrix, BSR"
    color, marker = "#cc79a7", "diamond"
    matrices = BLOCKS
    feature_sizes = (32, 128, 512)
    dtypes = Problem.dtypes
    threads = (2,)

    @property
    def bsr(self) -> sparse.bsr_matrix:
        """The matrix with its blocks."""
        assert self.matrix.bsr is not None, f"{self.matrix.name} has no blocks"
        return self.matrix.bsr

    def stored_bytes(self) -> int:
        return self.bsr.data.nbytes + self.bsr.indices.nbytes + self.bsr.indptr.nbytes
