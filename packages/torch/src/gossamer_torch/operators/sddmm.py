"""Sampled dense times dense, with gradients."""

from __future__ import annotations

import torch

from gossamer_ir.support.typed_calls import typed
from gossamer_torch.checks import require_dense, require_one_dtype, require_tensor_shape
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.operators.products import sampled_product
from gossamer_torch.sparse_matrix import SparseMatrix


@typed
def sddmm(A: SparseOperand, X: torch.Tensor, Y: torch.Tensor) -> SparseMatrix:
    """Return the elements of X @ Y.T that A (m by n) stores, for dense X (m by K) and Y (n by K), as a matrix
    with the pattern of A; its `values` has them in the order of CSR.

    The values of A are ignored. Operands, gradients (to X and Y) and errors are as for `spmm`.

    >>> A = SparseMatrix(torch.tensor([0, 2, 2]), torch.tensor([0, 1]), shape=(2, 2))
    >>> X, Y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    >>> sddmm(A, X, Y).to_dense()
    tensor([[17., 23.],
            [ 0.,  0.]])
    """
    matrix = to_sparse_matrix(A)
    for name, dense in (("X", X), ("Y", Y)):
        require_dense(name, dense)
    require_one_dtype("Y", Y, X.dtype, like="'X'")
    require_tensor_shape("X", X, (matrix.shape[0], None))
    require_tensor_shape("Y", Y, (matrix.shape[1], X.shape[1]))
    return matrix.with_values(sampled_product(X, Y, matrix.crow, matrix.col))
