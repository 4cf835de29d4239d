"""Sparse operators of gossamer for PyTorch: custom operators with gradients, on torch's tensors."""

from __future__ import annotations

from gossamer_torch.conversion import from_edge_index, to_sparse_matrix
from gossamer_torch.operators.sddmm import sddmm
from gossamer_torch.operators.spmm import spmm
from gossamer_torch.operators.spmv import spmv
from gossamer_torch.sparse_matrix import SparseMatrix

__all__ = [
    "SparseMatrix",
    "from_edge_index",
    "sddmm",
    "spmm",
    "spmv",
    "to_sparse_matrix",
]
