"""MixtureOfExperts: results and gradients are those of all experts, weighted."""

from __future__ import annotations

import pytest
import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.nn import MixtureOfExperts


def test_results_and_gradients_are_those_of_all_experts_weighted():
    layer = MixtureOfExperts(4, 8, 3, num_experts=5, top_k=2).double()
    x = torch.randn(2, 7, 4, dtype=torch.double, requires_grad=True)
    scores, experts = layer.router(x).topk(2, dim=-1)
    shares = torch.zeros(2, 7, 5, dtype=torch.double).scatter(-1, experts, scores.softmax(-1))
    hidden = torch.relu(torch.einsum("btc,ech->bteh", x, layer.weight1))
    expected = torch.einsum("bteh,eho,bte->bto", hidden, layer.weight2, shares)
    actual = layer(x)
    torch.testing.assert_close(actual, expected)
    seed, leaves = torch.randn_like(expected), [x, *layer.parameters()]
    gradients = torch.autograd.grad(actual, leaves, seed)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, leaves, seed))


def test_the_layer_compiles_to_one_graph():
    layer, x = MixtureOfExperts(4, 8, 3, num_experts=5), torch.randn(6, 4)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))


@pytest.mark.parametrize("shape", [(6, 5), (2, 2), ()])
def test_inputs_of_another_shape_are_refused(shape):
    with pytest.raises(ArgumentError) as caught:
        MixtureOfExperts(4, 8, 3, num_experts=5)(torch.ones(shape))
    assert caught.value.code == "operand.shape"


def test_more_experts_for_a_token_than_there_are_are_refused():
    with pytest.raises(ArgumentError) as caught:
        MixtureOfExperts(4, 8, 3, num_experts=2, top_k=3)
    assert caught.value.code == "layer.experts"
