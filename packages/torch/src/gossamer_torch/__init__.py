"""Sparse operators of gossamer for PyTorch: custom operators with gradients, on torch's tensors."""

from __future__ import annotations

from gossamer_torch.conversion import from_edge_index, to_sparse_matrix
from gossamer_torch.custom_ops.program_operator import custom_op
from gossamer_torch.operators.attention import attention
from gossamer_torch.operators.edge_softmax import edge_softmax
from gossamer_torch.operators.gather_multiply_scatter import gather_multiply_scatter
from gossamer_torch.operators.relational_spmm import RelationalMatrix, relational_spmm
from gossamer_torch.operators.sddmm import sddmm
from gossamer_torch.operators.segment_reduce import segment_reduce
from gossamer_torch.operators.spmm import spmm
from gossamer_torch.operators.spmv import spmv
from gossamer_torch.sparse_matrix import SparseMatrix

__all__ = [
    "RelationalMatrix",
    "SparseMatrix",
    "attention",
    "custom_op",
    "edge_softmax",
    "from_edge_index",
    "gather_multiply_scatter",
    "relational_spmm",
    "sddmm",
    "segment_reduce",
    "spmm",
    "spmv",
    "to_sparse_matrix",
]
