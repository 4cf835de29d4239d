"""SparseLinear: results and gradients of pruned layers, and what pruning keeps."""

from __future__ import annotations

import copy

import pytest
import torch

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError
from gossamer_torch.nn import SparseLinear


@pytest.mark.parametrize("kind", ["elements", "blocks", "2:4"])
def test_a_pruned_layer_has_the_results_and_gradients_of_a_dense_one(kind):
    dense = torch.nn.Linear(32, 48)
    layer = SparseLinear.prune(dense, sparsity=0.5, kind=kind)
    weight = layer.weight.to_dense()
    kept = weight != 0
    assert kept.float().mean() == 0.5
    torch.testing.assert_close(weight[kept], dense.weight[kept])
    x, seed = torch.randn(2, 5, 32, requires_grad=True), torch.randn(2, 5, 48)
    leaf = weight.detach().requires_grad_()
    expected = torch.nn.functional.linear(x, leaf, dense.bias)
    actual = layer(x)
    torch.testing.assert_close(actual, expected)
    x_gradients, weight_gradients, bias_gradients = torch.autograd.grad(
        expected, [x, leaf, dense.bias], seed
    )
    gradients = torch.autograd.grad(actual, [x, layer.values, layer.bias], seed)
    torch.testing.assert_close(
        gradients, (x_gradients, weight_gradients[kept], bias_gradients), rtol=1e-4, atol=1e-5
    )


def test_pruning_keeps_the_largest_weights():
    dense = torch.nn.Linear(4, 1, bias=False)
    dense.weight.data = torch.tensor([[0.1, -3.0, 2.0, 0.2]])
    assert SparseLinear.prune(dense, kind="2:4").values.tolist() == [-3.0, 2.0]
    assert SparseLinear.prune(dense, sparsity=0.75).values.tolist() == [-3.0]


def test_the_layer_is_saved_and_compiles_to_one_graph():
    layer = SparseLinear.prune(torch.nn.Linear(8, 4), sparsity=0.5)
    other = SparseLinear.prune(torch.nn.Linear(8, 4), sparsity=0.5)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(3, 8)
    torch.testing.assert_close(other(x), layer(x))
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))


def test_prepared_weights_are_used_without_gradients_until_training():
    layer = SparseLinear.prune(torch.nn.Linear(64, 48), sparsity=0.8)
    x = torch.randn(6, 64)
    expected = layer(x)
    layer.prepare(tokens=6)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), expected)
    layer.values.data.mul_(2)
    assert not torch.equal(layer(x), expected)
    layer.train()
    with torch.no_grad():
        torch.testing.assert_close(layer(x) - layer.bias, 2 * (expected - layer.bias))


@pytest.mark.parametrize("is_training", [False, True])
def test_a_layer_of_a_transformer_may_be_sparse(is_training):
    # The layer reads the weights for a kernel of its own in evaluation, and the encoder does with a mask.
    layer = torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2)
    x, mask = torch.randn(3, 5, 32), torch.arange(5).repeat(3, 1) >= torch.tensor([[5], [4], [2]])
    sparse = copy.deepcopy(encoder).train(is_training)
    for dense_layer, sparse_layer in zip(encoder.layers, sparse.layers, strict=True):
        for name in ("linear1", "linear2"):
            pruned = SparseLinear.prune(getattr(dense_layer, name), sparsity=0.8)
            setattr(sparse_layer, name, pruned.train(is_training))
            getattr(dense_layer, name).weight.data = pruned.weight.to_dense()
    for is_tracked in (True, False):
        with torch.set_grad_enabled(is_tracked):
            for options in ({}, {"src_key_padding_mask": mask}):
                expected, actual = encoder(x, **options), sparse(x, **options)
                torch.testing.assert_close(actual[~mask], expected[~mask], rtol=1e-4, atol=1e-5)
    sparse(x).sum().backward()
    values = sparse.layers[0].linear1.values
    assert values.grad.shape == values.shape


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: SparseLinear.prune(torch.nn.Linear(8, 4), sparsity=1.0), "layer.sparsity"),
        (lambda: SparseLinear.prune(torch.nn.Linear(8, 4), kind="rows"), "layer.pruning"),
        (lambda: SparseLinear.prune(torch.nn.Linear(8, 4), kind="blocks"), "operand.shape"),
        (lambda: SparseLinear(torch.eye(3).to_sparse_coo(), torch.ones(2)), "operand.shape"),
        (lambda: SparseLinear(torch.eye(3).to_sparse_coo())(torch.ones(2)), "operand.shape"),
    ],
)
def test_bad_arguments_are_refused(call, code):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == code


def test_the_bias_is_added_in_transforms(arrays):
    layer = SparseLinear(gt.SparseMatrix(*arrays, torch.randn(5), shape=(3, 4)), torch.zeros(3))
    biases, x = torch.randn(2, 3), torch.randn(6, 4)

    def outputs(bias):
        return torch.func.functional_call(layer, {"bias": bias}, x)

    expected = torch.stack([outputs(bias) for bias in biases])
    torch.testing.assert_close(torch.func.vmap(outputs)(biases), expected)


def test_layers_of_one_matrix_load_states_of_their_own(arrays):
    A = gt.SparseMatrix(*arrays, torch.randn(5), shape=(3, 4))
    layer, other, x = SparseLinear(A), SparseLinear(A), torch.randn(2, 4)
    expected = other(x)
    layer.load_state_dict({**layer.state_dict(), "col": torch.tensor([0, 1, 0, 1, 2])})
    torch.testing.assert_close(other(x), expected)


def test_a_prepared_layer_that_was_changed_computes_with_its_new_weights():
    dense = torch.nn.Linear(64, 32)
    layer, x = SparseLinear.prune(dense, kind="2:4").eval(), torch.randn(2, 64)
    layer.prepare(tokens=2)
    with torch.no_grad():
        layer.load_state_dict(
            {name: -state for name, state in layer.state_dict().items()}
            | {"crow": layer.crow, "col": layer.col}
        )
        torch.testing.assert_close(layer(x), x @ layer.weight.to_dense().T + layer.bias)
        layer.prepare(tokens=2)
        layer.double()
        x = x.double()
        torch.testing.assert_close(layer(x), x @ layer.weight.to_dense().T + layer.bias)
