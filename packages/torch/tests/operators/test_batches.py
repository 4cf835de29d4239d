"""Batches of matrices with one pattern, and relations side by side."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError
from gossamer_torch.custom_ops.products import sampled_product, sparse_product


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_each_matrix_of_a_batch_has_values_of_its_own(arrays):
    A = gt.SparseMatrix(*arrays, random(2, 3, 5), shape=(3, 4))
    X = random(2, 3, 4, 2)
    torch.testing.assert_close(gt.spmm(A, X), A.to_dense() @ X)
    torch.testing.assert_close(gt.spmm(A, X[0, 0]), A.to_dense() @ X[0, 0])
    assert repr(A) == "SparseMatrix(2 times 3 times 3 by 4, 5 nonzeros, torch.float64)"


def test_samples_of_a_batch(arrays):
    pattern = gt.SparseMatrix(*arrays, shape=(3, 4))
    X, Y = random(2, 3, 6), random(2, 4, 6)
    samples = gt.sddmm(pattern, X, Y)
    expected = (X @ Y.mT) * (pattern.to_dense() != 0)
    torch.testing.assert_close(samples.to_dense(), expected)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_batches(arrays, transposed):
    operands = (random(2, 5), random(2, 3 if transposed else 4, 2))

    def product(values, dense):
        return sparse_product(values, dense, *arrays, 4, transposed=transposed)

    assert gradcheck(product, operands)
    assert gradcheck(
        lambda x, y: sampled_product(x, y, *arrays), (random(2, 3, 2), random(2, 4, 2))
    )
    torch.library.opcheck(torch.ops.gossamer.spmm.default, (*operands, *arrays, 4, transposed))


def test_the_batches_must_be_the_same(arrays):
    A = gt.SparseMatrix(*arrays, random(2, 5), shape=(3, 4))
    with pytest.raises(ArgumentError) as caught:
        gt.spmm(A, random(3, 4, 2))
    assert caught.value.code == "operand.shape"


def test_relations_are_added_up(arrays):
    edges = [
        torch.tensor([[0, 2, 1], [3, 3, 1]]),
        torch.zeros(2, 0, dtype=torch.int64),
        torch.tensor([[1], [0]]),
    ]
    matrices = [
        gt.from_edge_index(edge, random(edge.shape[1]).detach(), shape=(3, 4)) for edge in edges
    ]
    relations = gt.RelationalMatrix(matrices)
    X, weights = random(4, 2), random(3, 2, 5)
    expected = sum(A.to_dense() @ X @ W for A, W in zip(matrices, weights, strict=True))
    torch.testing.assert_close(gt.relational_spmm(relations, X, weights), expected)
    assert gradcheck(lambda X, W: gt.relational_spmm(relations, X, W), (X, weights))


@pytest.mark.parametrize(
    ("code", "matrices"),
    [
        ("operator.operands", []),
        ("operand.shape", [torch.eye(2).to_sparse_coo(), torch.eye(3).to_sparse_coo()]),
        ("operand.dtype", [torch.eye(2).to_sparse_coo(), torch.eye(2).double().to_sparse_coo()]),
        ("operand.kind", [None]),
    ],
)
def test_relations_that_are_refused(code, matrices):
    with pytest.raises(ArgumentError) as caught:
        gt.RelationalMatrix(matrices)
    assert caught.value.code == code
