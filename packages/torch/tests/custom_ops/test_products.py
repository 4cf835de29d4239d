"""The custom operators: registration, fake kernels, first and second gradients, and those of the compiler."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode

import gossamer as gs
from gossamer_torch.custom_ops.products import sampled_product, sparse_product


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("features", [(), (3,)], ids=["vector", "matrix"])
@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_the_product(arrays, features, transposed):
    operands = (random(5), random(3 if transposed else 4, *features))

    def product(values, dense):
        return sparse_product(values, dense, *arrays, 4, transposed=transposed)

    assert gradcheck(product, operands)
    assert gradgradcheck(product, operands)


@pytest.mark.parametrize("features", [(), (3,)], ids=["vectors", "matrices"])
def test_gradients_of_the_sampled_product(arrays, features):
    operands = (random(3, *features), random(4, *features))

    def sampled(left, right):
        return sampled_product(left, right, *arrays)

    assert gradcheck(sampled, operands)
    assert gradgradcheck(sampled, operands)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_torch_finds_nothing_wrong_with_the_operators(arrays):
    torch.library.opcheck(
        torch.ops.gossamer.spmm.default, (random(5), random(4, 3), *arrays, 4, False)
    )
    torch.library.opcheck(torch.ops.gossamer.sddmm.default, (random(3, 2), random(4, 2), *arrays))


class _Calls(TorchDispatchMode):
    """The dense operands of the products that are called."""

    def __init__(self):
        super().__init__()
        self.dense = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.gossamer.spmm.default:
            self.dense.append(args[1])
        elif function is torch.ops.gossamer.sddmm.default:
            self.dense.append(args[0])
        return function(*args, **(kwargs or {}))


def test_a_transposed_gradient_is_copied_once(arrays):
    product = sparse_product(random(5), random(4, 2), *arrays, 4, transposed=False)
    with _Calls() as calls:
        product.backward(torch.randn(2, 3, dtype=torch.float64).t())
    assert [dense.is_contiguous() for dense in calls.dense] == [True, True]
    assert len({dense.data_ptr() for dense in calls.dense}) == 1


def test_gradients_are_those_of_the_compiler(arrays):
    """The adjoint of the program scatters the gradient of the dense operand; here rows are computed."""
    values, dense = random(5, dtype=torch.float32), random(4, 8, dtype=torch.float32)
    crow, col = (indices.int() for indices in arrays)
    grad = torch.randn(3, 8)
    sparse_product(values, dense, crow, col, 4, transposed=False).backward(grad)
    kernel = gs.compile(gs.adjoint("spmm", specialize={"feat_size": 8}))
    value_gradients, dense_gradients = np.zeros(5, np.float32), np.zeros((4, 8), np.float32)
    plain = [tensor.detach().numpy() for tensor in (values, dense, crow, col, grad)]
    kernel(*plain, value_gradients, dense_gradients)
    np.testing.assert_allclose(values.grad.numpy(), value_gradients, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dense.grad.numpy(), dense_gradients, rtol=1e-5, atol=1e-6)
