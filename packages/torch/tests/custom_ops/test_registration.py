"""Operators in transforms of torch: torch.func, vmap, compiled graphs, and the gradients that are needed."""

from __future__ import annotations

import pytest
import torch
from torch.func import grad, hessian, jacrev, vjp, vmap
from torch.overrides import TorchFunctionMode

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_torch.custom_ops.registration import torch_operator


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.fixture
def energy(arrays):
    """A number that depends on values and X by a product, a softmax and attention."""

    def energy(values, X):
        scores = gt.edge_softmax(gt.SparseMatrix(*arrays, values, shape=(3, 4)))
        product = gt.spmm(scores, X)
        return gt.attention(scores, product, X, X).square().sum()

    return energy


def test_gradients_of_torch_func_are_those_of_backward(energy):
    operands = (random(5).requires_grad_(), random(4, 3).requires_grad_())
    expected = torch.autograd.grad(energy(*operands), operands)
    plain = [operand.detach() for operand in operands]
    torch.testing.assert_close(grad(energy, argnums=(0, 1))(*plain), expected)
    value, pull_back = vjp(energy, *plain)
    torch.testing.assert_close(value, energy(*plain))
    torch.testing.assert_close(pull_back(torch.ones_like(value)), expected)


def test_second_derivatives_of_torch_func(energy):
    values, X = random(5), random(4, 3)
    expected = torch.autograd.functional.hessian(lambda values: energy(values, X), values)
    torch.testing.assert_close(jacrev(grad(energy))(values, X), expected)


def test_gradients_of_each_element_of_a_batch(energy):
    values, X = random(2, 5), random(4, 3)
    expected = torch.stack([grad(energy)(each, X) for each in values])
    torch.testing.assert_close(vmap(grad(energy), (0, None))(values, X), expected)
    torch.testing.assert_close(
        grad(lambda values: vmap(energy, (0, None))(values, X).sum())(values), expected
    )
    assert vmap(energy, (None, 2))(values[0], X[..., None].expand(4, 3, 0)).shape == (0,)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_derivatives_of_forward_mode_are_refused(energy):
    with pytest.raises(ArgumentError, match="gradient of forward mode"):
        hessian(energy)(random(5), random(4, 3))


def test_gradients_that_are_not_needed_are_not_computed():
    asked = []

    def gradients(gradient, needed, y):
        asked.append(needed)
        return {"x": gradient * y}

    @torch_operator(
        "product_of_test", new_result=lambda x: x.new_empty(x.shape), gradients=gradients
    )
    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y

    x, y = random(3).requires_grad_(), random(3)
    result = product(x, y)
    result.sum().backward()
    torch.testing.assert_close(x.grad, y)
    assert asked == [{"x"}]
    assert result.grad_fn.tensors == ["y"]


def test_functions_take_inputs_of_the_kernel_by_name():
    with pytest.raises(InternalError, match="'z' is not an input of the operator: x, y"):

        @torch_operator("sum_of_test", new_result=lambda z: torch.empty_like(z))
        def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y


def test_a_call_that_nothing_follows_runs_the_kernel(arrays):
    matrix = gt.SparseMatrix(*arrays, random(5), shape=(3, 4))
    X = random(4, 3).requires_grad_()
    assert type(gt.spmm(matrix, X).grad_fn).__name__ == "spmmBackward"
    with torch.profiler.profile() as profile:
        gt.spmm(matrix, X)
    assert "gossamer::spmm" in {event.key for event in profile.key_averages()}


def test_batches_of_gradients(arrays):
    matrix = gt.SparseMatrix(*arrays, random(5), shape=(3, 4))
    X, gradients = random(4, 3).requires_grad_(), random(2, 3, 3)
    product = gt.spmm(matrix, X)
    (batch,) = torch.autograd.grad(product, X, gradients, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(product, X, one, retain_graph=True)[0] for one in gradients]
    torch.testing.assert_close(batch, torch.stack(each))


def test_modes_of_functions_follow_a_call(arrays):
    matrix = gt.SparseMatrix(*arrays, random(5), shape=(3, 4))
    called = []

    class Listing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            called.append(str(func))
            return func(*args, **(kwargs or {}))

    with Listing():
        gt.spmm(matrix, random(4, 3))
    assert any("gossamer.spmm" in name for name in called)


def test_results_are_on_the_device_of_the_operands_whatever_the_default_is(arrays):
    matrix = gt.SparseMatrix(*arrays, random(5), shape=(3, 4))
    X = random(4, 3)
    with torch.device("meta"):
        results = gt.edge_softmax(matrix).values, gt.attention(matrix, X[:3], X, X)
    assert [result.device.type for result in results] == ["cpu", "cpu"]


class Marked(torch.Tensor):
    """A subclass, whose results are of the subclass, too."""


def test_tensors_that_torch_has_to_resolve_give_the_same_product(arrays):
    matrix = gt.SparseMatrix(*arrays, random(5), shape=(3, 4))
    X = random(4, 3)
    negative = torch.complex(X, -X).conj().imag
    assert negative.is_neg()
    torch.testing.assert_close(gt.spmm(matrix, negative), gt.spmm(matrix, X))
    product = gt.spmm(matrix, X.as_subclass(Marked))
    assert type(product) is Marked
    torch.testing.assert_close(product.as_subclass(torch.Tensor), gt.spmm(matrix, X))
