"""Reductions of rows by mean, maximum and minimum; segments; softmax of edges."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError
from gossamer_torch.custom_ops.softmax import SOFTMAX, row_softmax


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def expected_of(A, X, reduce):
    """The reduction of each row by torch, 0 for a row without elements."""
    products = A.values[:, None] * X[A.col]
    rows = A.row_indices().long()[:, None].expand_as(products)
    like = {"mean": "mean", "max": "amax", "min": "amin", "sum": "sum"}[reduce]
    zeros = torch.zeros(A.shape[0], X.shape[1], dtype=X.dtype)
    return zeros.scatter_reduce(0, rows, products, like, include_self=False)


@pytest.mark.parametrize("reduce", ["mean", "max", "min"])
def test_reductions_of_rows_and_their_gradients(arrays, reduce):
    values, X = random(5), random(4, 3)

    def reduced(values, X):
        return gt.spmm(gt.SparseMatrix(*arrays, values, shape=(3, 4)), X, reduce)

    A = gt.SparseMatrix(*arrays, values, shape=(3, 4))
    torch.testing.assert_close(reduced(values, X), expected_of(A, X, reduce))
    assert gradcheck(reduced, (values, X))
    assert gradgradcheck(reduced, (values, X))
    assert reduced(values, X[:, 0]).shape == (3,)
    batch = torch.stack([X, 2 * X])
    expected = torch.stack([reduced(values, x) for x in batch])
    torch.testing.assert_close(reduced(values, batch), expected)


def test_a_reduction_that_is_not_known_is_refused(arrays):
    with pytest.raises(ArgumentError):
        gt.spmm(gt.SparseMatrix(*arrays, shape=(3, 4)), torch.ones(4, 1), "median")


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_extremes_of_narrow_values_are_those_of_float32(arrays, reduce):
    wide = gt.SparseMatrix(*arrays, torch.tensor([1.0, -2, 3, 4, -5]), shape=(3, 4))
    X = torch.arange(8.0).reshape(4, 2)
    product = gt.spmm(wide.with_values(wide.values.half()), X.half(), reduce)
    assert torch.equal(product, gt.spmm(wide, X, reduce).half())


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_segments_are_those_of_torch(reduce):
    data, offsets = random(6, 2), torch.tensor([0, 1, 4, 6])
    expected = torch.segment_reduce(data, reduce, offsets=offsets)
    torch.testing.assert_close(gt.segment_reduce(data, offsets, reduce), expected)
    assert gradcheck(lambda data: gt.segment_reduce(data, offsets, reduce), (data,))


@pytest.mark.parametrize("reduce", ["sum", "max"])
def test_third_gradients(arrays, reduce):
    def gradients(values, X):
        product = gt.spmm(gt.SparseMatrix(*arrays, values, shape=(3, 4)), X, reduce)
        return torch.autograd.grad(product.pow(3).sum(), (values, X), create_graph=True)

    assert gradgradcheck(gradients, (random(5), random(4, 2)))


def test_the_mean_of_narrow_values_may_have_a_large_sum():
    narrow = torch.full((100,), 1000.0, dtype=torch.float16)
    mean = gt.segment_reduce(narrow, torch.tensor([0, 100]), "mean")
    assert mean.tolist() == [1000.0]
    assert mean.dtype == torch.float16


@pytest.mark.parametrize(
    ("data", "offsets", "code"),
    [
        (torch.ones(4, 4, 2), torch.tensor([0, 4]), "operand.shape"),
        (torch.tensor(1.0), torch.tensor([0, 1]), "operand.shape"),
        (torch.ones(4), torch.tensor(4), "operand.shape"),
        (torch.ones(4), torch.zeros(0, dtype=torch.int64), "operand.shape"),
        (torch.ones(4), torch.tensor([0.0, 4.0]), "operand.dtype"),
    ],
)
def test_segments_that_are_refused(data, offsets, code):
    with pytest.raises(ArgumentError) as caught:
        gt.segment_reduce(data, offsets)
    assert caught.value.code == code


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_the_softmax_of_edges(arrays, batch):
    scores = random(*batch, 5)
    A = gt.SparseMatrix(*arrays, scores, shape=(3, 4))
    weights = gt.edge_softmax(A)
    full = A.to_dense().masked_fill(A.with_values(torch.ones(5)).to_dense() == 0, -torch.inf)
    expected = torch.softmax(full, -1).nan_to_num(0)
    torch.testing.assert_close(weights.to_dense(), expected)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_gradients_of_the_softmax(arrays):
    def softmax(scores):
        return row_softmax(scores, *arrays, 4)

    assert gradcheck(softmax, (random(2, 5),))
    assert gradgradcheck(softmax, (random(5),))
    torch.library.opcheck(torch.ops.gossamer.row_softmax.default, (random(2, 5), *arrays, 4))
    torch.library.opcheck(
        torch.ops.gossamer.row_softmax_gradient.default, (random(5), random(5), *arrays, 4)
    )


def test_the_gradient_of_the_softmax_is_that_of_the_compiler(arrays):
    """The adjoint of the program computes the softmax again; the operator keeps it."""
    scores, weights = random(5), torch.randn(5, dtype=torch.float64)
    compiled = gt.custom_op(SOFTMAX)(scores, *arrays, n=4)
    (expected,) = torch.autograd.grad(compiled, scores, weights)
    (gradient,) = torch.autograd.grad(row_softmax(scores, *arrays, 4), scores, weights)
    torch.testing.assert_close(gradient, expected)
