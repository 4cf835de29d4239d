"""Sparse matrix times dense matrix, with gradients."""

from __future__ import annotations

import torch

from gossamer_support.typed_calls import typed
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.custom_ops.row_reductions import ReduceName, reduce_rows


@typed
def spmm(A: SparseOperand, X: torch.Tensor, reduce: ReduceName = "sum") -> torch.Tensor:
    """Return A @ X (m by K) for a sparse matrix A (m by n) and a dense X (n by K), or a vector X (n).

    A is a `SparseMatrix`, a sparse tensor of torch or a tensor of gossamer. X may have further dimensions in
    front, such as batches. If the values of A have them, too, each matrix is multiplied by its own X. The
    dtype is float32, float64, float16 or bfloat16, the same for both; narrow values are added in float32.
    `reduce` is how the products A[i, j] * X[j] of the stored elements of a row are reduced: "mean" divides
    their sum by their number, "max" and "min" are the others. A row without elements has 0.
    Gradients flow to the values of A and to X, any number of times. Equal maxima share a gradient evenly.

    Raises `ArgumentError` (`operand.kind`, `operand.shape`, `operand.dtype`, `operand.device`).

    >>> from gossamer_torch.sparse_matrix import SparseMatrix
    >>> A = SparseMatrix(torch.tensor([0, 2, 2]), torch.tensor([0, 1]), shape=(2, 2))
    >>> X = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> C = spmm(A, X)
    >>> C.tolist()
    [[4.0, 6.0], [0.0, 0.0]]
    >>> C.sum().backward()
    >>> X.grad
    tensor([[1., 1.],
            [1., 1.]])
    >>> spmm(A, X.detach(), reduce="max")
    tensor([[3., 4.],
            [0., 0.]])
    """
    return reduce_rows(to_sparse_matrix(A), X, reduce)
