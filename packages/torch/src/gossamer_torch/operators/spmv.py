"""Sparse matrix times vector, with gradients."""

from __future__ import annotations

import torch

from gossamer_support.typed_calls import typed
from gossamer_torch.checks import (
    require_dense,
    require_one_device,
    require_one_dtype,
    require_tensor_shape,
)
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.custom_ops.matrix_of_tensors import product_with_dense


@typed
def spmv(A: SparseOperand, x: torch.Tensor) -> torch.Tensor:
    """Return A @ x (m) for a sparse matrix A (m by n) and a vector x (n). Operands, gradients and errors are
    as for `spmm`.

    >>> spmv(torch.eye(3).to_sparse_coo(), torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 2., 3.])
    """
    matrix = to_sparse_matrix(A)
    require_dense("x", x)
    require_one_device("x", x, matrix.values.device, like="the matrix")
    require_one_dtype("x", x, matrix.dtype, like="the matrix")
    require_tensor_shape("x", x, (matrix.shape[1],))
    return product_with_dense(matrix, x)
