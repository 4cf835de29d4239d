"""The softmax over the elements of each row, with gradients."""

from __future__ import annotations

from gossamer_support.typed_calls import typed
from gossamer_torch.checks import require_dense
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.custom_ops.softmax import row_softmax
from gossamer_torch.program_dtypes import PROGRAM_DTYPES
from gossamer_torch.sparse_matrix import SparseMatrix


@typed
def edge_softmax(A: SparseOperand) -> SparseMatrix:
    """Return a sparse matrix (m by n) with the softmax of the stored elements of each row as its values: on a
    graph, the weights of the edges into each node sum to 1.

    Values may have further dimensions in front, such as heads. Narrow ones are computed in float32. A score
    of -inf has the weight 0; a row whose scores are all -inf is NaN. Gradients flow to the values, any number
    of times. Raises `ArgumentError` (`operand.kind`, `operand.dtype`).

    >>> import torch
    >>> A = SparseMatrix(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1]), shape=(2, 2))
    >>> edge_softmax(A).to_dense()
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    matrix = to_sparse_matrix(A)
    require_dense("values", matrix.values)
    if matrix.dtype not in PROGRAM_DTYPES:
        wide = edge_softmax(matrix.with_values(matrix.values.float()))
        return matrix.with_values(wide.values.to(matrix.dtype))
    weights = row_softmax(matrix.values, matrix.crow, matrix.col, matrix.shape[1])
    return matrix.with_values(weights)
