"""A sparse matrix of torch's tensors, whose values may require gradients."""

from __future__ import annotations

from typing import Any

import torch

from gossamer_support.typed_calls import typed
from gossamer_torch.checks import require_index_tensors, require_matrix_shape, require_value_tensor
from gossamer_torch.custom_ops.index_tensors import checked_indices
from gossamer_torch.custom_ops.row_reductions import reduce_rows
from gossamer_torch.patterns import kept_pattern


class SparseMatrix:
    """A sparse matrix in CSR: `crow` (m + 1) has the offsets of the rows, `col` (nnz) the columns and
    `values` (nnz) the values of the elements, for a `shape` of m rows and n columns.

    Values of further dimensions in front (`..., nnz`) are a batch of matrices, such as those of several
    heads. Index tensors are int32 or int64, columns of a row in any order; duplicates are added. They are
    copied and checked once for all matrices with the same index tensors, and so is the transposed pattern,
    which gradients need. `values` is shared, and may require a gradient; by default, all are 1. Raises
    `ArgumentError` (`operand.shape`, `operand.dtype`, `operand.kind`, `operand.device`), and `FormatError`
    for offsets or columns that are not valid.

    >>> crow, col = torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1])
    >>> A = SparseMatrix(crow, col, torch.tensor([1.0, 2.0, 3.0]), shape=(2, 3))
    >>> A
    SparseMatrix(2 by 3, 3 nonzeros, torch.float32)
    >>> A @ torch.ones(3)
    tensor([3., 3.])
    >>> A.to_dense()
    tensor([[1., 0., 2.],
            [0., 3., 0.]])
    """

    @typed
    def __init__(
        self,
        crow: torch.Tensor,
        col: torch.Tensor,
        values: torch.Tensor | None = None,
        *,
        shape: tuple[int, int],
    ) -> None:
        require_matrix_shape(shape)
        rows, columns = shape
        require_index_tensors(crow, col, rows)
        if values is None:
            values = torch.ones(col.shape[0], device=col.device)
        require_value_tensor(values, col)
        self.crow, self.col, self.values = checked_indices(crow), checked_indices(col), values
        self.shape = (rows, columns)
        if not torch.compiler.is_compiling():
            # For errors here instead of at the first call.
            kept_pattern(crow, col, columns)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def batch(self) -> tuple[int, ...]:
        """The sizes of the dimensions of a batch; none for one matrix."""
        return tuple(self.values.shape[:-1])

    @property
    def nnz(self) -> int:
        """The number of stored values, explicit zeros and duplicates included."""
        return self.col.shape[0]

    def with_values(self, values: torch.Tensor) -> SparseMatrix:
        """Return the matrix with other values in the same places.

        >>> A = SparseMatrix(torch.tensor([0, 1]), torch.tensor([0]), shape=(1, 1))
        >>> A.with_values(torch.tensor([3.0])).to_dense()
        tensor([[3.]])
        """
        require_value_tensor(values, self.col)
        return matrix_of_checked(self.crow, self.col, values, self.shape)

    def row_indices(self) -> torch.Tensor:
        """Return the row index of each element.

        >>> SparseMatrix(torch.tensor([0, 2]), torch.tensor([0, 1]), shape=(1, 2)).row_indices()
        tensor([0, 0])
        """
        lengths = self.crow.diff()
        numbers = torch.arange(self.shape[0], dtype=self.col.dtype, device=self.col.device)
        return torch.repeat_interleave(numbers, lengths, output_size=self.nnz)

    def to_dense(self) -> torch.Tensor:
        """Return the dense matrix, with gradients; duplicates are added."""
        rows, columns = self.shape
        dense = self.values.new_zeros((*self.batch, rows * columns))
        places = self.row_indices().long() * columns + self.col.long()
        dense = dense.index_add(-1, places, self.values)
        return dense.reshape(*self.batch, rows, columns)

    def to_torch(self) -> torch.Tensor:
        """Return a tensor of torch in the layout `torch.sparse_csr`, over the same memory. torch requires
        that the columns of each row are sorted without duplicates, and raises `RuntimeError` otherwise.

        >>> A = SparseMatrix(torch.tensor([0, 1]), torch.tensor([0]), shape=(1, 1))
        >>> A.to_torch().layout
        torch.sparse_csr
        """
        return torch.sparse_csr_tensor(
            self.crow, self.col, self.values, self.shape, check_invariants=True
        )

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        """Return the product with a dense matrix or vector, as `spmm` and `spmv` do."""
        return reduce_rows(self, dense)

    @classmethod
    def __torch_function__(cls, *_call: Any, **_keywords: Any) -> Any:
        """Refuse functions of torch, whose kernels do not take the matrix. Modules that call kernels with the
        weights of their parts, such as `torch.nn.TransformerEncoderLayer` in evaluation, call the parts
        themselves if a weight has this method."""
        return NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the tensors; loading checks them again."""
        return _restore, (self.crow, self.col, self.values, self.shape)

    def __repr__(self) -> str:
        rows, columns = self.shape
        batch = "".join(f"{size} times " for size in self.batch)
        return f"SparseMatrix({batch}{rows} by {columns}, {self.nnz} nonzeros, {self.dtype})"


def matrix_of_checked(
    crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor, shape: tuple[int, int]
) -> SparseMatrix:
    """Return the matrix of tensors that were checked already."""
    matrix = SparseMatrix.__new__(SparseMatrix)
    matrix.crow, matrix.col, matrix.values, matrix.shape = crow, col, values, shape
    return matrix


def _restore(
    crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor, shape: tuple[int, int]
) -> SparseMatrix:
    return SparseMatrix(crow, col, values, shape=shape)
