"""Products of gathered rows by segment: gradients of both orders, compilation, and bad operands."""

from __future__ import annotations

import pytest
import torch

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError

SOURCES, TARGETS = torch.tensor([0, 4, 4, 1, 6, 2]), torch.tensor([1, 1, 0, 5, 5, 3])
OFFSETS = torch.tensor([0, 4, 4, 6])


def operands():
    x = torch.randn(7, 3, dtype=torch.double, requires_grad=True)
    return x, torch.randn(3, 3, 4, dtype=torch.double, requires_grad=True)


def expected(x, weights, sources, targets):
    segments = torch.tensor([0, 0, 0, 0, 2, 2])
    rows = x[:6] if sources is None else x[sources]
    products = torch.einsum("ec,ecd->ed", rows, weights[segments])
    return products if targets is None else products.new_zeros(6, 4).index_add(0, targets, products)


@pytest.mark.parametrize("targets", [TARGETS, None], ids=["scattered", "in order"])
@pytest.mark.parametrize("sources", [SOURCES, None], ids=["gathered", "in order"])
def test_gradients_of_both_orders(sources, targets):
    x, weights = operands()
    if sources is None:
        x = x.detach()[:6].requires_grad_()

    def call(x, weights):
        return gt.gather_multiply_scatter(x, weights, sources, targets, OFFSETS, 6)

    torch.testing.assert_close(call(x, weights), expected(x, weights, sources, targets))
    assert torch.autograd.gradcheck(call, (x, weights))
    assert torch.autograd.gradgradcheck(call, (x, weights))


def test_long_segments_are_multiplied_in_chunks():
    sources = torch.arange(20000) % 7
    x, weights = torch.randn(7, 3), torch.randn(1, 3, 4)
    result = gt.gather_multiply_scatter(x, weights, sources, sources, torch.tensor([0, 20000]), 7)
    counts = torch.bincount(sources)[:, None]
    torch.testing.assert_close(result, counts * (x @ weights[0]), rtol=1e-4, atol=1e-3)


def test_the_operator_passes_the_checks_of_torch():
    x, weights = operands()
    arguments = (x, weights, SOURCES, TARGETS, OFFSETS, 6)
    torch.library.opcheck(torch.ops.gossamer.gather_multiply_scatter.default, arguments)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"sources": SOURCES + 3}, "operand.range"),
        ({"targets": TARGETS + 1}, "operand.range"),
        ({"targets": TARGETS[1:]}, "operand.shape"),
        ({"offsets": torch.tensor([0, 4, 4, 5])}, "operand.range"),
        ({"offsets": torch.tensor([0, 6])}, "operand.shape"),
        ({"weights": torch.ones(3, 3, 4)}, "operand.dtype"),
    ],
)
def test_bad_operands_are_refused(changed, code):
    x, weights = operands()
    right = {"weights": weights, "sources": SOURCES, "targets": TARGETS, "offsets": OFFSETS}
    with pytest.raises(ArgumentError) as caught:
        gt.gather_multiply_scatter(x, **{**right, **changed}, rows=6)
    assert caught.value.code == code


def test_a_number_of_rows_other_than_that_of_products_is_refused_without_targets():
    x, weights = operands()
    with pytest.raises(ArgumentError, match="'rows' is 5; expected 6") as caught:
        gt.gather_multiply_scatter(x, weights, SOURCES, None, OFFSETS, 5)
    assert caught.value.code == "operand.shape"
