"""SparseConv3d: results and gradients are those of the dense convolution at the stored voxels."""

from __future__ import annotations

import pytest
import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.nn import SparseConv3d, kernel_map

SIZE = 5


@pytest.mark.parametrize("kernel_size", [1, 3])
def test_a_layer_has_the_results_and_gradients_of_a_dense_convolution(kernel_size):
    stored = torch.nonzero(torch.rand(2, SIZE, SIZE, SIZE) < 0.3)
    layer = SparseConv3d(3, 4, kernel_size).double()
    features = torch.randn(len(stored), 3, dtype=torch.double, requires_grad=True)
    at = tuple(stored.T)
    dense = torch.zeros(2, SIZE, SIZE, SIZE, 3, dtype=torch.double).index_put(at, features)
    kernel = layer.weight.reshape(*[kernel_size] * 3, 3, 4).permute(4, 3, 0, 1, 2)
    convolved = torch.nn.functional.conv3d(
        dense.permute(0, 4, 1, 2, 3), kernel, layer.bias, padding=kernel_size // 2
    )
    expected = convolved.permute(0, 2, 3, 4, 1)[at]
    actual = layer(features, stored)
    torch.testing.assert_close(actual, expected)
    seed, leaves = torch.randn_like(expected), [features, *layer.parameters()]
    gradients = torch.autograd.grad(actual, leaves, seed)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, leaves, seed))


def test_voxels_of_different_samples_are_no_neighbors():
    layer = SparseConv3d(2, 2)
    features = torch.randn(2, 2)
    together = layer(features, torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]]))
    apart = [layer(features[i : i + 1], torch.tensor([[1, 1, 1]])) for i in range(2)]
    torch.testing.assert_close(together, torch.cat(apart))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: SparseConv3d(1, 1, 2), "layer.kernel_size"),
        (
            lambda: SparseConv3d(1, 1)(torch.ones(2, 1), torch.zeros(2, 3).long()),
            "operand.duplicates",
        ),
        (lambda: SparseConv3d(1, 1)(torch.ones(1, 1), torch.zeros(1, 2).long()), "operand.shape"),
        (lambda: SparseConv3d(1, 1)(torch.ones(2, 1), torch.zeros(1, 3).long()), "operand.shape"),
        (lambda: SparseConv3d(1, 1)(torch.ones(1, 2), torch.zeros(1, 3).long()), "operand.shape"),
        (
            lambda: SparseConv3d(1, 1)(torch.ones(2, 1), kernel_map(torch.zeros(1, 3).long())),
            "operand.shape",
        ),
    ],
)
def test_bad_arguments_are_refused(call, code):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == code


def test_a_grid_that_indices_cannot_number_is_refused():
    with pytest.raises(ArgumentError) as caught:
        kernel_map(torch.tensor([[0, 0, 0], [2**31, 2**31, 2**31]]))
    assert caught.value.code == "operand.range"
