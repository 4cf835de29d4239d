"""The sums of products of a layer as one operator: results, gradients, and what is kept for them."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from gossamer_torch import SparseMatrix
from gossamer_torch.custom_ops.affine_sums import (
    affine_sum,
    graph_convolution,
    rectified_affine_sum,
    rectified_graph_convolution,
)

# Four rows, so that the features of columns may be those of rows, too.
CROW, COL = torch.tensor([0, 2, 2, 5, 6]), torch.tensor([1, 0, 3, 2, 1, 3])
TERMS = {
    "products": (False, False, False),
    "bias": (False, False, True),
    "root": (True, False, True),
    "targets": (True, True, False),
}


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def sum_operands(has_root, has_target, has_bias):
    """Return the operands of `affine_sum`; other features are optional there."""
    other = (random(4, 2), random(5, 2)) if has_root or has_target else (None, None)
    return random(4, 3), random(5, 3), *other, random(5) if has_bias else None


def convolution_operands(has_root, has_target, has_bias):
    target = random(4, 2) if has_target else None
    root = random(5, 2 if has_target else 3) if has_root else None
    bias = random(5) if has_bias else None
    return random(6), random(4, 3), random(5, 3), target, root, bias


def convolve(*operands):
    return graph_convolution(*operands, CROW, COL, 4)


def convolve_and_rectify(*operands):
    return rectified_graph_convolution(*operands, CROW, COL, 4)


def dense_sum(x, weight, other, other_weight, bias):
    total = x @ weight.t()
    if other is not None:
        total = total + other @ other_weight.t()
    return total if bias is None else total + bias


def dense_convolution(values, x, weight, target, root_weight, bias):
    matrix = SparseMatrix(CROW, COL, values, shape=(4, 4)).to_dense()
    if root_weight is None:
        return dense_sum(matrix @ x, weight, None, None, bias)
    return dense_sum(matrix @ x, weight, x if target is None else target, root_weight, bias)


CASES = [
    pytest.param(operator, operands, dense, rectifies, id=operator.__name__ + "-" + str(rectifies))
    for operator, operands, dense, rectifies in (
        (affine_sum, sum_operands, dense_sum, False),
        (rectified_affine_sum, sum_operands, dense_sum, True),
        (convolve, convolution_operands, dense_convolution, False),
        (convolve_and_rectify, convolution_operands, dense_convolution, True),
    )
]


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize(("operator", "operands", "dense", "rectifies"), CASES)
def test_sums_and_gradients_are_those_of_dense_matrices(
    operator, operands, dense, rectifies, terms
):
    tensors = operands(*terms)
    result, expected = operator(*tensors), dense(*tensors)
    expected = expected.relu() if rectifies else expected
    torch.testing.assert_close(result, expected)
    leaves = [tensor for tensor in tensors if tensor is not None]
    seed = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(result, leaves, seed), torch.autograd.grad(expected, leaves, seed)
    )


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize(("operator", "operands", "dense", "rectifies"), CASES)
def test_first_and_second_derivatives(operator, operands, dense, rectifies, terms):
    tensors = operands(*terms)
    assert gradcheck(operator, tensors)
    assert gradgradcheck(operator, tensors)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("prefix", ["", "rectified_"])
def test_torch_finds_nothing_wrong_with_the_operators(prefix, terms):
    registered = torch.ops.gossamer
    torch.library.opcheck(getattr(registered, f"{prefix}affine_sum").default, sum_operands(*terms))
    torch.library.opcheck(
        getattr(registered, f"{prefix}graph_convolution").default,
        (*convolution_operands(*terms), CROW, COL, 4),
    )


def test_gradients_that_are_not_needed_take_no_product_with_the_matrix(monkeypatch):
    values, x, weight, _, root, bias = convolution_operands(*TERMS["root"])
    result = convolve(values.detach(), x.detach(), weight.detach(), None, root, bias)
    monkeypatch.setattr("gossamer_torch.custom_ops.affine_sums.sparse_product", None)
    root_gradients, bias_gradients = torch.autograd.grad(result.sum(), [root, bias])
    torch.testing.assert_close(root_gradients, torch.ones(5, 4, dtype=torch.float64) @ x)
    torch.testing.assert_close(bias_gradients, torch.full((5,), 4.0, dtype=torch.float64))


def test_a_result_may_be_written_to_unless_its_gradient_reads_it():
    operands = convolution_operands(*TERMS["root"])
    convolve(*operands).mul_(2).sum().backward()
    rectified = convolve_and_rectify(*operands).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        rectified.sum().backward()


def test_batches_of_gradients():
    operands = convolution_operands(*TERMS["root"])
    leaves = [tensor for tensor in operands if tensor is not None]
    result, gradients = convolve(*operands), torch.randn(2, 4, 5, dtype=torch.float64)
    batch = torch.autograd.grad(result, leaves, gradients, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(result, leaves, one, retain_graph=True) for one in gradients]
    torch.testing.assert_close(batch, tuple(map(torch.stack, zip(*each, strict=True))))


def test_derivatives_of_torch_func():
    values, x, weight, _, root, bias = [
        None if tensor is None else tensor.detach()
        for tensor in convolution_operands(*TERMS["root"])
    ]

    def energy(operator):
        def sum_with_factors(x, weight, root):
            return operator(values, x, weight, None, root, bias).square().sum()

        return sum_with_factors

    actual = torch.func.grad(energy(convolve), (0, 1, 2))(x, weight, root)
    expected = torch.func.grad(energy(dense_convolution), (0, 1, 2))(x, weight, root)
    torch.testing.assert_close(actual, expected)
