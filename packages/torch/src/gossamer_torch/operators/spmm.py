"""Sparse matrix times dense matrix, with gradients."""

from __future__ import annotations

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_ir.support.typed_calls import typed
from gossamer_torch.checks import require_dense, require_one_dtype
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.operators.products import sparse_product
from gossamer_torch.sparse_matrix import SparseMatrix


@typed
def spmm(A: SparseOperand, X: torch.Tensor) -> torch.Tensor:
    """Return A @ X (m by K) for a sparse matrix A (m by n) and a dense X (n by K), or a vector X (n).

    A is a `SparseMatrix`, a sparse tensor of torch or a tensor of gossamer. X may have further dimensions in
    front, such as batches. The dtype is float32, float64, float16 or bfloat16, the same for both; narrow
    values are added in float32. Gradients flow to the values of A and to X, any number of times.

    Raises `ArgumentError` (`operand.kind`, `operand.shape`, `operand.dtype`, `operand.device`).

    >>> A = SparseMatrix(torch.tensor([0, 2, 2]), torch.tensor([0, 1]), shape=(2, 2))
    >>> X = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> C = spmm(A, X)
    >>> C.tolist()
    [[4.0, 6.0], [0.0, 0.0]]
    >>> C.sum().backward()
    >>> X.grad
    tensor([[1., 1.],
            [1., 1.]])
    """
    matrix = to_sparse_matrix(A)
    _require_factor(matrix, X)
    if X.dim() <= 2:
        return _product(matrix, X)
    # One product for all batches, which reads the matrix once.
    *batches, columns, features = X.shape
    wide = X.reshape(-1, columns, features).movedim(0, 1).reshape(columns, -1)
    product = _product(matrix, wide).reshape(matrix.shape[0], -1, features)
    return product.movedim(0, 1).reshape(*batches, matrix.shape[0], features)


def _require_factor(matrix: SparseMatrix, X: torch.Tensor) -> None:
    require_dense("X", X)
    require_one_dtype("X", X, matrix.dtype, like="the matrix")
    dimension = 0 if X.dim() == 1 else X.dim() - 2
    if X.dim() == 0 or X.shape[dimension] != matrix.shape[1]:
        raise ArgumentError(
            "operand.shape",
            f"'X' has the shape {tuple(X.shape)}; expected ({matrix.shape[1]}, any).",
        )


def _product(matrix: SparseMatrix, X: torch.Tensor) -> torch.Tensor:
    product: torch.Tensor = sparse_product(
        matrix.values, X, matrix.crow, matrix.col, matrix.shape[1], transposed=False
    )
    return product
