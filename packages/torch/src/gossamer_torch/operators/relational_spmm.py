"""Sums over relations of sparse matrix times dense matrix times weights, with gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_support.typed_calls import typed
from gossamer_torch.checks import (
    require_dense,
    require_one_device,
    require_one_dtype,
    require_tensor_shape,
)
from gossamer_torch.conversion import SparseOperand, from_edge_index, to_sparse_matrix
from gossamer_torch.operators.spmm import spmm


class RelationalMatrix:
    """Sparse matrices of several relations between the same rows and columns, side by side in one matrix, of
    which only columns with elements are stored.

    `matrices` has one for each relation, all of one shape and dtype; at least one. Raises `ArgumentError`
    (`operator.operands`, `operand.shape`, `operand.dtype`).

    >>> identity = torch.eye(2).to_sparse_coo()
    >>> relations = RelationalMatrix([identity, 2 * identity])
    >>> [columns.tolist() for columns in relations.columns]
    [[0, 1], [0, 1]]
    """

    @typed
    def __init__(self, matrices: Sequence[SparseOperand]) -> None:
        sparse_matrices = [to_sparse_matrix(matrix) for matrix in matrices]
        if not sparse_matrices:
            raise ArgumentError("operator.operands", "There are no matrices; expected one or more.")
        self.shape = sparse_matrices[0].shape
        for number, matrix in enumerate(sparse_matrices):
            require_tensor_shape(f"the values of matrix {number}", matrix.values, (None,))
            first = sparse_matrices[0].values
            require_one_device(f"matrix {number}", matrix.values, first.device, like="the first")
            require_one_dtype(f"matrix {number}", matrix.values, first.dtype, like="the first")
            if matrix.shape != self.shape:
                raise ArgumentError(
                    "operand.shape",
                    f"Matrix {number} has the shape {matrix.shape}; expected {self.shape}.",
                )
        stored = [
            torch.unique(matrix.col.long(), return_inverse=True) for matrix in sparse_matrices
        ]
        self.columns = [columns for columns, _ in stored]
        starts = torch.tensor([0, *(len(columns) for columns in self.columns)]).cumsum(0)
        places = [place + start for (_, place), start in zip(stored, starts, strict=False)]
        rows = torch.cat([matrix.row_indices().long() for matrix in sparse_matrices])
        edges = torch.stack([rows, torch.cat(places)])
        values = torch.cat([matrix.values for matrix in sparse_matrices])
        shape = (self.shape[0], int(starts[-1]))
        self.side_by_side = from_edge_index(edges, values, shape=shape)


@typed
def relational_spmm(
    relations: RelationalMatrix, X: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Return the sum over relations r of A[r] @ X @ weights[r] (m by F), for sparse matrices A[r] (m by n), a
    dense X (n by K) and weights (R by K by F).

    Rows of X are multiplied by the weights of a relation if it has an element in their column, and one
    product with all relations side by side adds them up. Dtypes, gradients and errors are as for `spmm`.

    >>> identity = torch.eye(2).to_sparse_coo()
    >>> relations = RelationalMatrix([identity, 2 * identity])
    >>> relational_spmm(relations, torch.ones(2, 1), torch.tensor([[[1.0]], [[10.0]]]))
    tensor([[21.],
            [21.]])
    """
    require_dense("X", X)
    require_dense("weights", weights)
    values = relations.side_by_side.values
    for name, tensor in (("X", X), ("weights", weights)):
        require_one_device(name, tensor, values.device, like="the matrices")
    require_tensor_shape("X", X, (relations.shape[1], None))
    require_tensor_shape("weights", weights, (len(relations.columns), X.shape[1], None))
    require_one_dtype("weights", weights, X.dtype, like="'X'")
    products = [
        X.index_select(0, columns) @ weight
        for columns, weight in zip(relations.columns, weights, strict=True)
    ]
    return spmm(relations.side_by_side, torch.cat(products))
