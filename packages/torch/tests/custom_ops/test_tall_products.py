"""Products over many rows: split, in memory of NumPy, and as torch's own operations if these are observed."""

from __future__ import annotations

import pytest
import torch

from gossamer_torch.custom_ops import tall_products
from gossamer_torch.custom_ops.affine_sums import rectified_affine_sum
from gossamer_torch.custom_ops.tall_products import (
    SPLIT_ROWS,
    dense_product,
    gradient_before_relu,
    product_over_rows,
)

COMPILED = {"fullgraph": True, "backend": "aot_eager", "dynamic": True}


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(tall_products, "MAPPED_BYTES", 0)
    monkeypatch.setattr(tall_products, "SPLIT_ROWS", 2)


def is_of_numpy(tensor):
    return not tensor.untyped_storage().resizable()


@pytest.mark.parametrize("rows", [0, 3, 2 * SPLIT_ROWS - 1, 2 * SPLIT_ROWS, 3 * SPLIT_ROWS + 5])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_over_rows_is_that_of_float64(rows, transposed):
    left, right = torch.randn(rows, 3), torch.randn(rows, 5)
    if transposed:
        left = left.t().contiguous().t()
    expected = left.double().t() @ right.double()
    result = product_over_rows(left, right)
    torch.testing.assert_close(result.double(), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_results_are_in_memory_of_numpy(all_are_large, dtype):
    left, right, bias = (torch.randn(shape, dtype=dtype) for shape in ((5, 3), (3, 2), 2))
    for result, expected in (
        (dense_product(left, right), left @ right),
        (dense_product(left, right, bias), left @ right + bias),
        (gradient_before_relu(left, left.relu()), left * (left > 0)),
    ):
        torch.testing.assert_close(result, expected)
        assert is_of_numpy(result)


def test_small_results_and_those_of_other_dtypes_are_torchs():
    left, right = torch.randn(5, 3), torch.randn(3, 2)
    assert not is_of_numpy(dense_product(left, right))
    narrow = dense_product(left.bfloat16(), right.bfloat16())
    assert narrow.dtype == torch.bfloat16


def operands():
    shapes = ((5, 3), (4, 3), (5, 2), (4, 2), (4,))
    return tuple(torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in shapes)


def test_gradients_of_both_orders(all_are_large):
    assert torch.autograd.gradcheck(rectified_affine_sum, operands())
    assert torch.autograd.gradgradcheck(rectified_affine_sum, operands())


def test_transforms_and_compiled_graphs_see_operations_of_torch(all_are_large):
    x, weight, *_ = operands()

    def loss(weight):
        return rectified_affine_sum(x.detach(), weight, None, None, None).square().sum()

    (expected,) = torch.autograd.grad(loss(weight), weight)
    torch.testing.assert_close(torch.func.grad(loss)(weight.detach()), expected)
    per_sample = torch.func.vmap(torch.func.grad(loss))(torch.stack([weight.detach()] * 2))
    torch.testing.assert_close(per_sample, torch.stack([expected] * 2))
    (compiled,) = torch.autograd.grad(torch.compile(loss, **COMPILED)(weight), weight)
    torch.testing.assert_close(compiled, expected)
