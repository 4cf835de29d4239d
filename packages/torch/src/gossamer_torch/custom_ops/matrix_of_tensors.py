"""The tensors of a sparse matrix in CSR that operators read, and its product with a dense operand."""

from __future__ import annotations

from typing import Protocol, Self

import torch

from gossamer_torch.batches import flattened_batch
from gossamer_torch.custom_ops.products import sparse_product


class MatrixOfTensors(Protocol):
    """A matrix in CSR, or a batch of them with one pattern, such as a `SparseMatrix`."""

    crow: torch.Tensor
    col: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, int]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""

    @property
    def batch(self) -> tuple[int, ...]:
        """The sizes of the dimensions of a batch; none for one matrix."""

    @property
    def nnz(self) -> int:
        """The number of elements of each matrix."""

    def with_values(self, values: torch.Tensor) -> Self:
        """Return the matrix with other values in the same places."""


def product_with_dense(matrix: MatrixOfTensors, dense: torch.Tensor) -> torch.Tensor:
    """Return the product of a matrix with a dense matrix or vector; that of each matrix of a batch, which
    may have any dimensions, with one of three dimensions."""
    values = flattened_batch(matrix.values, 1) if matrix.batch else matrix.values
    return sparse_product(values, dense, matrix.crow, matrix.col, matrix.shape[1], transposed=False)
