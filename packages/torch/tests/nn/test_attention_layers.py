"""SparseAttention and RaggedAttention: results and gradients are those of PyTorch's attention with masks."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from gossamer_ir.errors import ArgumentError
from gossamer_torch.nn import RaggedAttention, SparseAttention, band_mask, bigbird_mask

LENGTH = 9
LAYERS = {
    "band": lambda: SparseAttention.band(LENGTH, reach=2),
    "bigbird": lambda: SparseAttention.bigbird(LENGTH, reach=1, num_global=2, num_random=1),
    "any": lambda: SparseAttention(torch.tril(torch.ones(LENGTH, LENGTH)).to_sparse_coo()),
}


def mask_of(layer):
    rows = torch.repeat_interleave(torch.arange(LENGTH), layer.crow.diff())
    mask = torch.zeros(LENGTH, LENGTH, dtype=torch.bool)
    mask[rows, layer.col] = True
    return mask


@pytest.mark.parametrize("name", LAYERS)
def test_results_and_gradients_are_those_of_a_dense_mask(name):
    layer = LAYERS[name]()
    q, k, v = leaves = [
        torch.randn(2, 3, LENGTH, 4, dtype=torch.double, requires_grad=True) for _ in range(3)
    ]
    expected = scaled_dot_product_attention(q, k, v, attn_mask=mask_of(layer))
    actual = layer(q, k, v)
    torch.testing.assert_close(actual, expected)
    seed = torch.randn_like(expected)
    gradients = torch.autograd.grad(actual, leaves, seed)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, leaves, seed))


def test_the_mask_of_bigbird_has_its_parts():
    mask = mask_of(LAYERS["bigbird"]())
    assert mask[:2].all()
    assert mask[:, :2].all()
    assert mask.diagonal().all()
    assert mask.diagonal(1).all()
    assert not mask.all()


def test_sparse_attention_compiles_to_one_graph():
    layer, q = LAYERS["band"](), torch.randn(2, LENGTH, 4)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(q, q, q), layer(q, q, q))


def test_ragged_attention_is_multihead_attention_of_each_sequence():
    layer = RaggedAttention(8, num_heads=2).double()
    other = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    other.in_proj_weight.data, other.in_proj_bias.data = layer.in_proj.weight, layer.in_proj.bias
    other.out_proj.load_state_dict(layer.out_proj.state_dict())
    x = torch.randn(7, 8, dtype=torch.double, requires_grad=True)
    parts = [x[:3], x[3:4], x[4:]]
    expected = torch.cat([other(part, part, part)[0] for part in parts])
    actual = layer(x, torch.tensor([0, 3, 3, 4, 7]))
    torch.testing.assert_close(actual, expected)
    seed = torch.randn_like(expected)
    (gradient,) = torch.autograd.grad(actual, [x], seed)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, [x], seed)[0])


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: RaggedAttention(8, 3), "layer.heads"),
        (lambda: RaggedAttention(8, 2)(torch.ones(3, 8), torch.tensor([0, 2])), "operand.range"),
        (lambda: RaggedAttention(8, 2)(torch.ones(3, 7), torch.tensor([0, 3])), "operand.shape"),
        (lambda: LAYERS["band"]()(*[torch.ones(8, 4)] * 3), "operand.shape"),
        (
            lambda: RaggedAttention(8, 2)(torch.ones(3, 8).to_sparse(), torch.tensor([0, 3])),
            "operand.kind",
        ),
        (lambda: band_mask(4, -1), "operand.range"),
        (
            lambda: bigbird_mask(4, reach=1, num_global=-1, num_random=0),
            "operand.range",
        ),
        (
            lambda: bigbird_mask(4, reach=1, num_global=0, num_random=-1),
            "operand.range",
        ),
    ],
)
def test_bad_arguments_are_refused(call, code):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == code
