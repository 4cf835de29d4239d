"""The recipe "Add a PyTorch operator" in docs/extending: an operator that gossamer lacks, from its script to
gradients and a compiled model."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError
from gossamer_support.typed_calls import typed
from gossamer_torch.checks import require_dense, require_one_dtype, require_tensor_shape
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix

_distances = gt.custom_op("""
@T.prim_func
def distances(
    x: T.handle, y: T.handle, d: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, k: T.int64, nnz: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (J_detach, K), "float32")
    D = T.sp.match_buffer(d, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "distances") as [i, j, k_1]:
        with T.init():
            D[i, j] = 0.0
        D[i, j] = D[i, j] + (X[i, k_1] - Y[j, k_1]) * (X[i, k_1] - Y[j, k_1])
""")


@typed
def edge_distances(A: SparseOperand, X: torch.Tensor, Y: torch.Tensor) -> gt.SparseMatrix:
    """Return the squared distances of rows of X and Y at the elements of A."""
    matrix = to_sparse_matrix(A)
    for name, dense in (("X", X), ("Y", Y)):
        require_dense(name, dense)
    require_one_dtype("Y", Y, X.dtype, like="'X'")
    require_tensor_shape("X", X, (matrix.shape[0], None))
    require_tensor_shape("Y", Y, (matrix.shape[1], X.shape[1]))
    return matrix.with_values(_distances(X, Y, matrix.crow, matrix.col))


@pytest.fixture
def operands(arrays):
    X, Y = (torch.randn(rows, 2, dtype=torch.float64, requires_grad=True) for rows in (3, 4))
    return gt.SparseMatrix(*arrays, shape=(3, 4)), X, Y


def test_a_new_operator_has_results_and_gradients(operands):
    A, X, Y = operands
    elements = A.row_indices().long(), A.col.long()
    expected = (torch.cdist(X, Y) ** 2)[elements]
    torch.testing.assert_close(edge_distances(A, X, Y).values, expected)
    assert gradcheck(lambda X, Y: edge_distances(A, X, Y).values, (X, Y))


def test_a_new_operator_is_part_of_a_compiled_model(operands):
    A, X, Y = operands

    def model(X, Y):
        return gt.spmm(edge_distances(A, X, Y), Y).sum()

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(X, Y), model(X, Y))


def test_a_wrong_operand_of_a_new_operator_is_refused(operands):
    A, X, Y = operands
    with pytest.raises(ArgumentError) as caught:
        edge_distances(A, Y, X)
    assert caught.value.code == "operand.shape"
