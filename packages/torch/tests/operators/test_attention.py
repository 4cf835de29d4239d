"""Sparse attention against torch's, with a mask: heads, gradients, compilation."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import scaled_dot_product_attention

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError
from gossamer_torch.custom_ops.batched_attention import batched_attention


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def band(length):
    places = torch.arange(length)
    return (places[:, None] - places).abs() < 3


@pytest.mark.filterwarnings("ignore:Sparse .* beta:UserWarning")
@pytest.mark.parametrize("heads", [(), (2,), (2, 3)])
def test_attention_is_that_of_torch_with_a_mask(heads):
    mask = band(16)
    Q, K, V = (random(*heads, 16, 4, dtype=torch.float32) for _ in range(3))
    result = gt.attention(mask.to_sparse_csr(), Q, K, V)
    expected = scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    torch.testing.assert_close(result, expected)
    weights = torch.randn_like(result)
    gradients = torch.autograd.grad(result, (Q, K, V), weights)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, (Q, K, V), weights))


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_gradients_of_attention(arrays):
    operands = (random(1, 3, 2), random(1, 4, 2), random(1, 4, 2))

    def attended(*operands):
        return batched_attention(*operands, *arrays, 0.5)

    assert gradcheck(attended, operands)
    assert gradgradcheck(attended, operands)
    torch.library.opcheck(torch.ops.gossamer.attention.default, (*operands, *arrays, 0.5))


def test_torch_compiles_attention(arrays):
    pattern = gt.SparseMatrix(*arrays, shape=(3, 4))
    Q, K, V = random(3, 2), random(4, 2), random(4, 2)

    def model(Q, K, V):
        return gt.attention(pattern, Q, K, V).square().sum()

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    expected = torch.autograd.grad(model(Q, K, V), (Q, K, V))
    torch.testing.assert_close(torch.autograd.grad(compiled(Q, K, V), (Q, K, V)), expected)


def test_rows_without_elements_and_without_heads(arrays):
    pattern = gt.SparseMatrix(*arrays, shape=(3, 4))
    assert gt.attention(pattern, torch.ones(3, 2), torch.ones(4, 2), torch.ones(4, 2))[
        1
    ].tolist() == [0, 0]
    assert gt.attention(pattern, *(torch.ones(0, n, 2) for n in (3, 4, 4))).shape == (0, 3, 2)


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("operand.shape", lambda q, k, v: (k, k, v)),
        ("operand.shape", lambda q, k, v: (q, k, v[:, :1])),
        ("operand.shape", lambda q, k, v: (q[None], k, v)),
        ("operand.dtype", lambda q, k, v: (q, k, v.double())),
        ("operand.dtype", lambda q, k, v: (q.int(), k.int(), v.int())),
    ],
)
def test_operands_of_attention_that_are_refused(arrays, code, change):
    pattern = gt.SparseMatrix(*arrays, shape=(3, 4))
    with pytest.raises(ArgumentError) as caught:
        gt.attention(pattern, *change(torch.ones(3, 2), torch.ones(4, 2), torch.ones(4, 2)))
    assert caught.value.code == code


def test_narrow_operands_are_computed_in_float32(arrays):
    A = gt.SparseMatrix(*arrays, shape=(3, 4))
    wide = [torch.randn(length, 2, dtype=torch.bfloat16) for length in (3, 4, 4)]
    product = gt.attention(A, *wide)
    assert torch.equal(product, gt.attention(A, *(dense.float() for dense in wide)).bfloat16())
    scores = A.with_values(torch.randn(5, dtype=torch.float16))
    weights = gt.edge_softmax(scores.with_values(scores.values.float())).values
    assert torch.equal(gt.edge_softmax(scores).values, weights.half())
