"""Reductions of the products of each row of a sparse matrix with the rows of a dense one."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch

from gossamer_torch.batches import flattened_batch
from gossamer_torch.checks import (
    require_dense,
    require_one_device,
    require_one_dtype,
    require_tensor_shape,
)
from gossamer_torch.custom_ops.extreme_products import extreme_product
from gossamer_torch.custom_ops.matrix_of_tensors import MatrixOfTensors, product_with_dense
from gossamer_torch.program_dtypes import PROGRAM_DTYPES

ReduceName: TypeAlias = Literal["sum", "mean", "max", "min"]
_IS_EXTREME: dict[ReduceName, bool] = {"sum": False, "mean": False, "max": True, "min": True}


def reduce_rows(
    matrix: MatrixOfTensors, X: torch.Tensor, reduce: ReduceName = "sum"
) -> torch.Tensor:
    """Return the reductions of the products A[i, j] * X[j] over the elements of each row, as `spmm` does.

    >>> from gossamer_torch.sparse_matrix import SparseMatrix
    >>> A = SparseMatrix(torch.tensor([0, 2]), torch.tensor([0, 1]), shape=(1, 2))
    >>> reduce_rows(A, torch.tensor([[1.0], [3.0]]), "mean")
    tensor([[2.]])
    """
    _require_factor(matrix, X)
    if reduce != "sum" and X.dtype not in PROGRAM_DTYPES:
        # Sums of rows may be larger than any narrow value.
        wide = matrix.with_values(matrix.values.float())
        return reduce_rows(wide, X.float(), reduce).to(X.dtype)
    if _IS_EXTREME[reduce]:
        return extreme_product(matrix, X, reduce)
    product = _batched_product(matrix, X) if matrix.batch else _wide_product(matrix, X)
    if reduce == "mean":
        counts = matrix.crow.diff().clamp(min=1).to(X.dtype)
        product = product / (counts if X.dim() == 1 else counts[:, None])
    return product


def _require_factor(matrix: MatrixOfTensors, X: torch.Tensor) -> None:
    require_dense("X", X)
    require_one_device("X", X, matrix.values.device, like="the matrix")
    require_one_dtype("X", X, matrix.dtype, like="the matrix")
    columns, batch = matrix.shape[1], matrix.batch
    if batch and X.dim() > 2:
        require_tensor_shape("X", X, (*batch, columns, None))
    elif X.dim() == 1 and not batch:
        require_tensor_shape("X", X, (columns,))
    else:
        require_tensor_shape("X", X, (*(None,) * (X.dim() - 2), columns, None))


def _wide_product(matrix: MatrixOfTensors, X: torch.Tensor) -> torch.Tensor:
    """Return one product for all batches of X, which reads the matrix once."""
    if X.dim() <= 2:
        return product_with_dense(matrix, X)
    *batch, _, features = X.shape
    factors = flattened_batch(X, 2).movedim(0, 1)
    product = product_with_dense(matrix, factors.flatten(1))
    product = product.reshape(matrix.shape[0], factors.shape[1], features)
    return product.movedim(0, 1).reshape(*batch, matrix.shape[0], features)


def _batched_product(matrix: MatrixOfTensors, X: torch.Tensor) -> torch.Tensor:
    *_, columns, features = X.shape
    factors = flattened_batch(X.expand(*matrix.batch, columns, features), 2)
    product = product_with_dense(matrix, factors)
    return product.reshape(*matrix.batch, matrix.shape[0], features)
