"""Batches and matrices without elements."""

from __future__ import annotations

import pytest
import torch

import gossamer_torch as gt
from gossamer_torch.batches import flattened_batch
from gossamer_torch.nn import GATConv, RaggedAttention, SparseAttention


def empty_matrix(rows, columns, batch=()):
    crow = torch.zeros(rows + 1, dtype=torch.int64)
    values = torch.zeros(*batch, 0, requires_grad=True)
    return gt.SparseMatrix(crow, torch.zeros(0, dtype=torch.int64), values, shape=(rows, columns))


def test_dimensions_in_front_become_one():
    assert flattened_batch(torch.ones(2, 3, 4), 1).shape == (6, 4)
    assert flattened_batch(torch.ones(0, 3, 0, 4), 2).shape == (0, 0, 4)


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_operators_on_matrices_without_elements(batch, shape):
    rows, columns = shape
    A = empty_matrix(rows, columns, batch)
    for reduce in ("sum", "mean", "max"):
        for features in (2, 0):
            X = torch.randn(2, columns, features, requires_grad=True)
            C = gt.spmm(A, X, reduce)
            assert torch.equal(C, torch.zeros(2, rows, features))
            C.sum().backward()
            assert torch.equal(X.grad, torch.zeros_like(X))
    assert gt.edge_softmax(A).values.shape == (*batch, 0)
    queries, keys = torch.randn(*batch, rows, 4), torch.randn(*batch, columns, 4)
    attended = gt.attention(empty_matrix(rows, columns), queries, keys, keys)
    assert torch.equal(attended, torch.zeros(*batch, rows, 4))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_empty_batches(arrays, reduce):
    A = gt.SparseMatrix(*arrays, torch.randn(5), shape=(3, 4))
    X = torch.randn(0, 4, 2, requires_grad=True)
    C = gt.spmm(A, X, reduce)
    assert C.shape == (0, 3, 2)
    C.sum().backward()
    assert gt.spmm(A.with_values(torch.randn(0, 5)), X[0:0], reduce).shape == (0, 3, 2)


def test_layers_on_nothing():
    edges, offsets = torch.zeros(2, 0, dtype=torch.int64), torch.tensor([0])
    assert GATConv(3, 4, 2)(torch.ones(0, 3), edges).shape == (0, 8)
    alone = GATConv(3, 4, 2, add_self_loops=False)(torch.ones(3, 3), edges)
    assert torch.equal(alone, torch.zeros(3, 8))
    assert RaggedAttention(4, 2)(torch.ones(0, 4), offsets).shape == (0, 4)
    nothing = torch.ones(0, 4)
    assert SparseAttention.band(0, reach=1)(nothing, nothing, nothing).shape == (0, 4)
