"""Sparse matrix times dense matrix, with gradients."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch

from gossamer_ir.support.typed_calls import typed
from gossamer_torch.batches import flattened_batch
from gossamer_torch.checks import require_dense, require_one_dtype, require_tensor_shape
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.operators.extreme_products import extreme_product
from gossamer_torch.operators.products import product_with_dense
from gossamer_torch.program_dtypes import PROGRAM_DTYPES
from gossamer_torch.sparse_matrix import MATRIX_OPERATORS, SparseMatrix

# Other operations: no reduction of rows is one of them.
ReduceName: TypeAlias = Literal["sum", "mean", "max", "min"]
# Other operations: no reduction of rows is one of them.
_IS_EXTREME: dict[ReduceName, bool] = {"sum": False, "mean": False, "max": True, "min": True}


@typed
def spmm(A: SparseOperand, X: torch.Tensor, reduce: ReduceName = "sum") -> torch.Tensor:
    """Return A @ X (m by K) for a sparse matrix A (m by n) and a dense X (n by K), or a vector X (n).

    A is a `SparseMatrix`, a sparse tensor of torch or a tensor of gossamer. X may have further dimensions in
    front, such as batches. If the values of A have them, too, each matrix is multiplied by its own X. The
    dtype is float32, float64, float16 or bfloat16, the same for both; narrow values are added in float32.
    `reduce` is how the products A[i, j] * X[j] of the stored elements of a row are reduced: "mean" divides
    their sum by their number, "max" and "min" need float32 or float64. A row without elements has 0.
    Gradients flow to the values of A and to X, any number of times. Equal maxima share a gradient evenly.

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
    >>> spmm(A, X.detach(), reduce="max")
    tensor([[3., 4.],
            [0., 0.]])
    """
    matrix = to_sparse_matrix(A)
    _require_factor(matrix, X)
    if _IS_EXTREME[reduce]:
        return extreme_product(matrix, X, reduce)
    if reduce == "mean" and X.dtype not in PROGRAM_DTYPES:
        # Sums of rows may be larger than any narrow value.
        wide = matrix.with_values(matrix.values.float())
        return spmm(wide, X.float(), "mean").to(X.dtype)
    product = _batched_product(matrix, X) if matrix.batch else _wide_product(matrix, X)
    if reduce == "mean":
        counts = matrix.crow.diff().clamp(min=1).to(X.dtype)
        product = product / (counts if X.dim() == 1 else counts[:, None])
    return product


MATRIX_OPERATORS["@"] = spmm


def _require_factor(matrix: SparseMatrix, X: torch.Tensor) -> None:
    require_dense("X", X)
    require_one_dtype("X", X, matrix.dtype, like="the matrix")
    columns, batch = matrix.shape[1], matrix.batch
    if batch and X.dim() > 2:
        require_tensor_shape("X", X, (*batch, columns, None))
    elif X.dim() == 1 and not batch:
        require_tensor_shape("X", X, (columns,))
    else:
        require_tensor_shape("X", X, (*(None,) * (X.dim() - 2), columns, None))


def _wide_product(matrix: SparseMatrix, X: torch.Tensor) -> torch.Tensor:
    """Return one product for all batches of X, which reads the matrix once."""
    if X.dim() <= 2:
        return product_with_dense(matrix, X)
    *batch, _, features = X.shape
    factors = flattened_batch(X, 2).movedim(0, 1)
    product = product_with_dense(matrix, factors.flatten(1))
    product = product.reshape(matrix.shape[0], factors.shape[1], features)
    return product.movedim(0, 1).reshape(*batch, matrix.shape[0], features)


def _batched_product(matrix: SparseMatrix, X: torch.Tensor) -> torch.Tensor:
    *_, columns, features = X.shape
    factors = flattened_batch(X.expand(*matrix.batch, columns, features), 2)
    product = product_with_dense(matrix, factors)
    return product.reshape(*matrix.batch, matrix.shape[0], features)
