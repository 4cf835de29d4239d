"""Sampled dense times dense, with gradients."""

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
from gossamer_torch.custom_ops.products import sampled_product
from gossamer_torch.sparse_matrix import SparseMatrix


@typed
def sddmm(A: SparseOperand, X: torch.Tensor, Y: torch.Tensor) -> SparseMatrix:
    """Return the elements of X @ Y.T that A (m by n) stores, for dense X (m by K) and Y (n by K), as a matrix
    with the pattern of A; its `values` has them in the order of CSR.

    X and Y may have further dimensions in front, the same for both and for the values of the result. The
    values of A are ignored. Operands, gradients (to X and Y) and errors are as for `spmm`.

    >>> A = SparseMatrix(torch.tensor([0, 2, 2]), torch.tensor([0, 1]), shape=(2, 2))
    >>> X, Y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    >>> sddmm(A, X, Y).to_dense()
    tensor([[17., 23.],
            [ 0.,  0.]])
    """
    matrix = to_sparse_matrix(A)
    for name, dense in (("X", X), ("Y", Y)):
        require_dense(name, dense)
        require_one_device(name, dense, matrix.col.device, like="the matrix")
    require_one_dtype("Y", Y, X.dtype, like="'X'")
    batch: tuple[int | None, ...] = (None,) * (X.dim() - 2)
    require_tensor_shape("X", X, (*batch, matrix.shape[0], None))
    require_tensor_shape("Y", Y, (*X.shape[:-2], matrix.shape[1], X.shape[-1]))
    rows = (X, Y) if X.dim() == 2 else (X.flatten(0, -3), Y.flatten(0, -3))
    values = sampled_product(*rows, matrix.crow, matrix.col)
    return matrix.with_values(values.reshape(*X.shape[:-2], matrix.nnz))
