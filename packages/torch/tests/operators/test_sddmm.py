"""SDDMM on tensors of torch."""

from __future__ import annotations

import pytest
import torch

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError


def test_products_are_sampled_at_the_pattern(arrays):
    A, X, Y = gt.SparseMatrix(*arrays, shape=(3, 4)), torch.randn(3, 6), torch.randn(4, 6)
    expected = (X @ Y.T) * (A.to_dense() != 0)
    torch.testing.assert_close(gt.sddmm(A, X, Y).to_dense(), expected)


def test_the_gradient_of_a_graph_with_attention(arrays):
    """A product whose values are sampled: the gradients of both operators meet."""
    A = gt.SparseMatrix(*arrays, shape=(3, 4))
    X = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    Y = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X, Y: gt.spmm(gt.sddmm(A, X, Y), Y), (X, Y))


@pytest.mark.parametrize(
    ("code", "X", "Y"),
    [
        ("operand.shape", torch.ones(4, 2), torch.ones(4, 2)),
        ("operand.shape", torch.ones(3, 2), torch.ones(4, 3)),
        ("operand.dtype", torch.ones(3, 2), torch.ones(4, 2, dtype=torch.float64)),
    ],
)
def test_operands_that_do_not_fit_are_refused(arrays, code, X, Y):
    with pytest.raises(ArgumentError) as caught:
        gt.sddmm(gt.SparseMatrix(*arrays, shape=(3, 4)), X, Y)
    assert caught.value.code == code
