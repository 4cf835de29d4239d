"""GCNConv, SAGEConv and RGCNConv: results and gradients are those of dense matrices."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils import prune

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError
from gossamer_torch.nn import GATConv, GCNConv, RGCNConv, SAGEConv, relation_pairs

NODES = 6
# Node 5 has no edges, node 2 has a loop, and one edge is there twice.
EDGES = torch.tensor([[0, 1, 1, 3, 2, 4, 0, 0], [1, 0, 2, 1, 2, 3, 4, 4]])
RELATIONS = torch.tensor([0, 1, 1, 0, 2, 0, 1, 1])


def adjacency(weights):
    return torch.zeros(NODES, NODES, dtype=weights.dtype).index_put(
        (EDGES[1], EDGES[0]), weights, accumulate=True
    )


def compared(actual, expected, leaves):
    torch.testing.assert_close(actual, expected)
    seed = torch.randn_like(expected)
    gradients = torch.autograd.grad(actual, leaves, seed)
    for gradient, other in zip(gradients, torch.autograd.grad(expected, leaves, seed), strict=True):
        torch.testing.assert_close(gradient, other)


def dense_gcn(layer, x, weights):
    matrix = adjacency(weights)
    missing = torch.diag((matrix.diagonal() == 0).to(matrix.dtype))
    looped = matrix + missing
    roots = looped.sum(1).rsqrt()
    return (roots[:, None] * looped * roots) @ layer.lin(x) + layer.bias


@pytest.mark.parametrize(("in_channels", "out_channels"), [(3, 4), (9, 4)])
def test_a_gcn_layer_has_the_results_and_gradients_of_dense_matrices(in_channels, out_channels):
    layer = GCNConv(in_channels, out_channels).double()
    x = torch.randn(NODES, in_channels, dtype=torch.double, requires_grad=True)
    weights = torch.rand(EDGES.shape[1], dtype=torch.double, requires_grad=True)
    expected = dense_gcn(layer, x, weights)
    compared(layer(x, EDGES, weights), expected, [x, weights, *layer.parameters()])


def test_a_graph_is_an_edge_index_or_a_matrix():
    layer, x = GCNConv(3, 4), torch.randn(NODES, 3)
    matrix = gt.from_edge_index(EDGES.flip(0), shape=(NODES, NODES))
    torch.testing.assert_close(layer(x, EDGES), layer(x, matrix))
    torch.testing.assert_close(layer(x, EDGES), layer(x, adjacency(torch.ones(8)).to_sparse_coo()))


def test_edges_that_were_changed_are_read_again():
    layer, x, edges = GCNConv(3, 4), torch.randn(NODES, 3), EDGES.clone()
    layer(x, edges)
    edges[1, 0] = 5
    torch.testing.assert_close(layer(x, edges), layer(x, edges.clone()))


@pytest.mark.parametrize("aggr", ["mean", "sum"])
@pytest.mark.parametrize("in_channels", [3, 9])
def test_a_sage_layer_has_the_results_and_gradients_of_dense_matrices(aggr, in_channels):
    layer = SAGEConv(in_channels, 4, aggr).double()
    x = torch.randn(NODES, in_channels, dtype=torch.double, requires_grad=True)
    matrix = adjacency(torch.ones(8, dtype=torch.double))
    if aggr == "mean":
        matrix = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    expected = layer.lin_l(matrix @ x) + layer.lin_r(x)
    compared(layer(x, EDGES), expected, [x, *layer.parameters()])


@pytest.mark.parametrize("num_bases", [None, 2])
@pytest.mark.parametrize("aggr", ["mean", "sum"])
def test_an_rgcn_layer_has_the_results_and_gradients_of_dense_matrices(aggr, num_bases):
    layer = RGCNConv(3, 4, 4, num_bases, aggr=aggr).double()
    x = torch.randn(NODES, 3, dtype=torch.double, requires_grad=True)
    weights = layer.weight
    if num_bases is not None:
        weights = torch.einsum("rb,bio->rio", layer.comp, weights)
    expected = x @ layer.root + layer.bias
    for relation in range(4):
        matrix = adjacency((relation == RELATIONS).double())
        if aggr == "mean":
            matrix = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
        expected = expected + matrix @ x @ weights[relation]
    compared(layer(x, EDGES, RELATIONS), expected, [x, *layer.parameters()])


@pytest.mark.parametrize("concat", [True, False])
def test_a_gat_layer_has_the_results_and_gradients_of_dense_matrices(concat):
    layer = GATConv(3, 4, heads=2, concat=concat).double()
    x = torch.randn(NODES, 3, dtype=torch.double, requires_grad=True)
    # One of the two equal edges: the dense scores of both would be one.
    edges = EDGES[:, :-1]
    stored = torch.eye(NODES, dtype=torch.bool)
    stored[edges[1], edges[0]] = True
    features = layer.lin(x).reshape(NODES, 2, 4)
    source_scores, target_scores = (
        (features * layer.att_src).sum(-1),
        (features * layer.att_dst).sum(-1),
    )
    scores = torch.nn.functional.leaky_relu(target_scores[:, None] + source_scores, 0.2)
    shares = scores.masked_fill(~stored[..., None], -torch.inf).softmax(1)
    received = torch.einsum("ijh,jhc->ihc", shares, features)
    expected = received.reshape(NODES, -1) if concat else received.mean(1)
    compared(layer(x, edges), expected + layer.bias, [x, *layer.parameters()])


def test_means_over_relations_are_as_exact_as_the_features():
    layer = RGCNConv(3, 4, 1, root_weight=False).double()
    x, edges = torch.randn(4, 3, dtype=torch.float64), torch.tensor([[0, 1, 2], [3, 3, 3]])
    output = layer(x, edges, torch.zeros(3, dtype=torch.int64))
    torch.testing.assert_close(output[3], x[:3].mean(0) @ layer.weight[0], rtol=1e-14, atol=1e-15)


ACTIVATIONS = {
    "relu": torch.relu,
    "functional relu": torch.nn.functional.relu,
    "a module": torch.nn.ReLU(),
    "another": torch.tanh,
}


@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
@pytest.mark.parametrize("in_channels", [3, 9])
@pytest.mark.parametrize("normalize", [False, True])
def test_a_layer_applies_its_activation_last(in_channels, activation, normalize):
    for kind in (GCNConv, SAGEConv):
        layer = kind(in_channels, 4, normalize=normalize, activation=activation).double()
        plain = kind(in_channels, 4, normalize=normalize).double()
        plain.load_state_dict(layer.state_dict())
        x = torch.randn(NODES, in_channels, dtype=torch.double, requires_grad=True)
        output, expected = layer(x, EDGES), activation(plain(x, EDGES))
        torch.testing.assert_close(output, expected)
        seed = torch.randn_like(expected)
        torch.testing.assert_close(
            torch.autograd.grad(output, [x, *layer.parameters()], seed),
            torch.autograd.grad(expected, [x, *plain.parameters()], seed),
        )


def test_relu_is_computed_with_the_sums_of_a_layer():
    layer = SAGEConv(9, 4, activation=torch.relu)
    output = layer(torch.randn(NODES, 9, requires_grad=True), EDGES)
    assert output.grad_fn.name() == "rectified_graph_convolutionBackward"


def test_the_normalized_matrix_of_edges_is_made_once_until_they_are_written_to():
    layer, x, edges = GCNConv(3, 4), torch.randn(NODES, 3), EDGES.clone()
    matrix = layer._matrix_of(edges, None, x)
    assert layer._matrix_of(edges, None, x) is matrix
    assert GCNConv(3, 4, improved=True)._matrix_of(edges, None, x) is not matrix
    edges[0, 0] = 5
    torch.testing.assert_close(layer(x, edges), layer(x, edges.clone()))


@pytest.mark.parametrize("in_channels", [3, 9])
def test_layers_run_under_autocast(in_channels):
    x = torch.randn(NODES, in_channels)
    for layer, graph in [
        (GCNConv(in_channels, 4), (EDGES,)),
        (SAGEConv(in_channels, 4), (EDGES,)),
        (GCNConv(in_channels, 4, activation=torch.relu), (EDGES,)),
        (SAGEConv(in_channels, 4, activation=torch.relu), (EDGES,)),
        (GATConv(in_channels, 4, 2), (EDGES,)),
        (RGCNConv(in_channels, 4, 3, num_bases=2), (EDGES, RELATIONS)),
    ]:
        expected = layer(x, *graph)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = layer(x, *graph)
        torch.testing.assert_close(output.float(), expected, atol=0.05, rtol=0.05)
        output.sum().backward()


def test_layers_of_matrices_compile_to_one_graph():
    matrix = gt.from_edge_index(EDGES.flip(0), shape=(NODES, NODES))
    pairs = relation_pairs(EDGES, RELATIONS, NODES, 3)
    gcn = GCNConv(3, 4, normalize=False, activation=torch.relu)
    sage, rgcn = SAGEConv(4, 3, activation=torch.relu), RGCNConv(3, 2, 3)

    def model(x):
        return rgcn(sage(gcn(x, matrix), matrix), pairs)

    x = torch.randn(NODES, 3)
    expected = model(x)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(compiled, expected)
    for layer in (gcn, sage, rgcn):
        leaves = list(layer.parameters())
        actual = torch.autograd.grad(compiled.sum(), leaves, retain_graph=True)
        wanted = torch.autograd.grad(expected.sum(), leaves, retain_graph=True)
        torch.testing.assert_close(actual, wanted)


@pytest.mark.parametrize(
    ("layer", "graph"),
    [
        (GCNConv(3, 4), (EDGES, torch.rand(EDGES.shape[1]))),
        (GCNConv(3, 4), (gt.from_edge_index(EDGES.flip(0), shape=(NODES, NODES)),)),
        (SAGEConv(3, 4), (EDGES,)),
        (GATConv(3, 4, heads=2), (EDGES,)),
        (RGCNConv(3, 4, 3), (EDGES, RELATIONS)),
    ],
    ids=["GCN", "GCN of a matrix", "SAGE", "GAT", "RGCN"],
)
def test_layers_of_edges_compile_to_one_graph(layer, graph):
    x = torch.randn(NODES, 3, requires_grad=True)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")(x, *graph)
    compared(compiled, layer(x, *graph), [x, *layer.parameters()])


def test_edges_that_a_compiled_graph_computes_are_read_each_time():
    layer, x = SAGEConv(3, 4), torch.randn(NODES, 3)

    def model(edges):
        return layer(x, edges), layer(x, edges.flip(0))

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for edges in (EDGES, EDGES.flip(0), EDGES):
        torch.testing.assert_close(compiled(edges), model(edges))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda x: SAGEConv(3, 4, "median"), "layer.aggregation"),
        (lambda x: GCNConv(3, 4)(x, EDGES + 3), "operand.range"),
        (lambda x: GCNConv(3, 4)(x, torch.eye(2).to_sparse_csr()), "operand.shape"),
        (lambda x: GCNConv(3, 4)(x, torch.eye(6).to_sparse_csr(), torch.ones(6)), "layer.options"),
        (lambda x: RGCNConv(3, 4, 2)(x, EDGES, RELATIONS), "operand.range"),
        (lambda x: RGCNConv(3, 4, 3)(x, EDGES, RELATIONS[:2]), "operand.shape"),
        (lambda x: RGCNConv(3, 4, 3)(x[:4], EDGES.flip(0), RELATIONS), "operand.range"),
        (lambda x: RGCNConv(3, 4, 3)(x[:4], EDGES, RELATIONS), "operand.range"),
        (lambda x: RGCNConv(3, 4, 3)(x, EDGES), "operand.kind"),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse .* beta:UserWarning")
def test_bad_arguments_are_refused(call, code):
    with pytest.raises(ArgumentError) as caught:
        call(torch.ones(NODES, 3))
    assert caught.value.code == code


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.vmap])
@pytest.mark.parametrize("cached", [False, True])
def test_the_first_call_of_a_gcn_layer_may_be_transformed(transform, cached):
    layer, x = GCNConv(3, 5, cached=cached), torch.randn(2, NODES, 3)
    x = x[0] if transform is torch.func.grad else x

    def total(x):
        return layer(x, edges).sum()

    edges = EDGES.clone()
    first, second = transform(total)(x), transform(total)(x)
    assert first.shape == (x.shape if transform is torch.func.grad else (2,))
    torch.testing.assert_close(first, second)


def test_a_derived_layer_has_a_matrix_of_its_own():
    class Doubled(GCNConv):
        def propagation_matrix(self, matrix):
            matrix = super().propagation_matrix(matrix)
            return matrix.with_values(2 * matrix.values)

    layer, doubled, x = GCNConv(3, 5), Doubled(3, 5), torch.randn(NODES, 3)
    doubled.load_state_dict(layer.state_dict())
    torch.testing.assert_close(doubled(x, EDGES), 2 * layer(x, EDGES))


@pytest.mark.parametrize("in_channels", [3, 8])
@pytest.mark.parametrize(("layer", "name"), [(GCNConv, "lin"), (SAGEConv, "lin_l")])
def test_pruned_layers_are_trained(layer, name, in_channels):
    layer, x = layer(in_channels, 5), torch.randn(NODES, in_channels)
    linear = getattr(layer, name)
    prune.l1_unstructured(linear, "weight", amount=0.5)
    for _ in range(2):
        layer(x, EDGES).square().sum().backward()
    assert torch.all(linear.weight_orig.grad[linear.weight_mask == 0] == 0)
    assert torch.any(linear.weight_orig.grad != 0)


def test_an_activation_that_is_more_than_relu_is_called():
    class Shifted(torch.nn.ReLU):
        def forward(self, x):
            return super().forward(x) + 1

    hooked = torch.nn.ReLU()
    hooked.register_forward_hook(lambda _module, _inputs, output: output + 1)
    for activation in (Shifted(), hooked):
        assert GCNConv(3, 5, activation=activation)(torch.randn(NODES, 3), EDGES).min() >= 1


@pytest.mark.parametrize("in_channels", [3, 8])
def test_parameters_of_another_dtype_are_refused(in_channels):
    layer = GCNConv(in_channels, 5)
    layer.bias = torch.nn.Parameter(torch.zeros(5, dtype=torch.float64))
    with pytest.raises(ArgumentError) as caught:
        layer(torch.randn(NODES, in_channels), EDGES)
    assert caught.value.code == "operand.dtype"
