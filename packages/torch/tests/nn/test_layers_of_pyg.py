"""The arguments of PyG's layers: results are those of sums over edges, and of PyG where it is installed."""

from __future__ import annotations

import pytest
import torch

import gossamer_torch.nn as layers
from gossamer_ir.errors import ArgumentError
from gossamer_torch.nn.rgcn_conv import relation_pairs

SOURCES, TARGETS, EDGES = 7, 5, 8
# Node 5 receives nothing, node 2 has a loop, one edge is there twice.
EDGE_INDEX = torch.tensor([[0, 1, 1, 3, 2, 4, 6, 6], [1, 0, 2, 1, 2, 3, 4, 4]])
RELATIONS = torch.tensor([0, 1, 1, 0, 2, 0, 1, 1])
REDUCTIONS = {"mean": "mean", "sum": "sum", "add": "sum", "max": "amax", "min": "amin"}


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def both(nodes):
    """Return features of one set of nodes, or of sources and targets."""
    return random(SOURCES, 4) if nodes == "one set" else (random(SOURCES, 4), random(TARGETS, 6))


def ends(x):
    return x if isinstance(x, tuple) else (x, x)


def reduced(messages, edges, count, aggr):
    """Return the reductions of the messages into each node, 0 for none."""
    index = edges[1][:, None].expand_as(messages)
    zeros = messages.new_zeros(count, messages.shape[1])
    return zeros.scatter_reduce(0, index, messages, REDUCTIONS[aggr], include_self=False)


def sage(layer, x):
    source, target = ends(x)
    if layer.project:
        source = layer.lin(source).relu()
    received = reduced(source[EDGE_INDEX[0]], EDGE_INDEX, len(target), layer.aggr)
    output = layer.lin_l(received) + layer.lin_r(target)
    return torch.nn.functional.normalize(output, dim=-1) if layer.normalize else output


def gat(layer, x, edge_attr=None):
    (source, target), edges = ends(x), EDGE_INDEX
    if edge_attr is None:
        edge_attr = source.new_zeros(EDGES, 1)
    if layer.add_self_loops:
        is_kept = edges[0] != edges[1]
        edges, edge_attr = edges[:, is_kept], edge_attr[is_kept]
        loops = torch.arange(min(len(source), len(target)))
        filled = reduced(edge_attr, edges, len(target), "mean")[: len(loops)]
        if layer.fill_value != "mean":
            filled = torch.full_like(filled, layer.fill_value)
        edges = torch.cat([edges, loops.expand(2, -1)], 1)
        edge_attr = torch.cat([edge_attr, filled])

    def by_head(linear, features):
        return linear(features).reshape(len(features), layer.heads, -1)

    values = by_head(layer.lin or layer.lin_src, source)
    scores = (values * layer.att_src).sum(-1)[edges[0]]
    target_features = by_head(layer.lin or layer.lin_dst, target)
    scores = scores + (target_features * layer.att_dst).sum(-1)[edges[1]]
    if layer.lin_edge is not None:
        scores = scores + (by_head(layer.lin_edge, edge_attr) * layer.att_edge).sum(-1)
    powers = torch.nn.functional.leaky_relu(scores, layer.negative_slope).exp()
    shares = powers / reduced(powers, edges, len(target), "sum")[edges[1]]
    messages = (shares[..., None] * values[edges[0]]).flatten(1)
    received = reduced(messages, edges, len(target), "sum")
    if not layer.concat:
        received = received.reshape(len(target), layer.heads, -1).mean(1)
    return received + layer.bias + (0 if layer.res is None else layer.res(target))


def rgcn(layer, x):
    source, target = ends(x)
    output = target @ layer.root + layer.bias
    for relation, weight in enumerate(layer.weight):
        edges = EDGE_INDEX[:, relation == RELATIONS]
        matrix = weight if layer.num_blocks is None else torch.block_diag(*weight)
        received = reduced(source[edges[0]], edges, len(target), layer.aggr)
        output = output + received @ matrix
    return output


CASES = [
    *(("SAGEConv", (5, aggr), {}, ()) for aggr in REDUCTIONS),
    ("SAGEConv", (3,), {"project": True, "normalize": True}, ()),
    ("GATConv", (3,), {"heads": 2}, ()),
    ("GATConv", (3,), {"heads": 2, "residual": True, "concat": False}, ()),
    ("GATConv", (3,), {"heads": 2, "edge_dim": 3}, (random(EDGES, 3),)),
    ("GATConv", (3,), {"edge_dim": 3, "fill_value": 2.0}, (random(EDGES, 3),)),
    ("GATConv", (3,), {"edge_dim": 3, "add_self_loops": False}, (random(EDGES, 3),)),
    ("RGCNConv", (6, 4), {"num_blocks": 2}, ()),
    ("RGCNConv", (6, 4), {"aggr": "max"}, ()),
]
REFERENCES = {"SAGEConv": sage, "GATConv": gat, "RGCNConv": rgcn}


def layer_of(library, name, nodes, arguments, options):
    torch.manual_seed(0)
    in_channels = 4 if nodes == "one set" else (4, 6)
    return getattr(library, name)(in_channels, *arguments, **options).double()


def gradients(output, leaves):
    seed = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape)
    return torch.autograd.grad(output, leaves, seed, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("nodes", ["one set", "bipartite"])
@pytest.mark.parametrize(("name", "arguments", "options", "others"), CASES)
def test_a_layer_sums_over_edges(name, arguments, options, others, nodes):
    layer, x = layer_of(layers, name, nodes, arguments, options), both(nodes)
    graph = (EDGE_INDEX, RELATIONS) if name == "RGCNConv" else (EDGE_INDEX,)
    output, expected = layer(x, *graph, *others), REFERENCES[name](layer, x, *others)
    torch.testing.assert_close(output, expected)
    leaves = [*dict.fromkeys(ends(x)), *others, *layer.parameters()]
    torch.testing.assert_close(gradients(output, leaves), gradients(expected, leaves))


@pytest.mark.parametrize("nodes", ["one set", "bipartite"])
@pytest.mark.parametrize(("name", "arguments", "options", "others"), CASES)
def test_a_layer_is_that_of_pyg(name, arguments, options, others, nodes):
    pyg = pytest.importorskip("torch_geometric.nn")
    layer = layer_of(layers, name, nodes, arguments, options)
    other, x = layer_of(pyg, name, nodes, arguments, options), both(nodes)
    layer.load_state_dict(other.state_dict())
    graph = (EDGE_INDEX, RELATIONS) if name == "RGCNConv" else (EDGE_INDEX,)
    torch.testing.assert_close(layer(x, *graph, *others), other(x, *graph, *others))


@pytest.mark.parametrize(
    ("layer", "others"),
    [
        (layers.SAGEConv((4, 6), 3, "max"), ()),
        (layers.GATConv((4, 6), 3, edge_dim=2), (torch.randn(EDGES, 2),)),
    ],
    ids=["SAGE", "GAT"],
)
def test_layers_of_bipartite_graphs_compile_to_one_graph(layer, others):
    x = (torch.randn(SOURCES, 4), torch.randn(TARGETS, 6))
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")(x, EDGE_INDEX, *others)
    expected, leaves = layer(x, EDGE_INDEX, *others), list(layer.parameters())
    torch.testing.assert_close(compiled, expected)
    torch.testing.assert_close(gradients(compiled, leaves), gradients(expected, leaves))


def test_an_improved_gcn_layer_adds_loops_of_weight_2():
    layer, x = layers.GCNConv(4, 3, improved=True, bias=False).double(), random(SOURCES, 4)
    loops = torch.tensor([node for node in range(SOURCES) if node != 2])
    edges = torch.cat([EDGE_INDEX, loops.expand(2, -1)], 1)
    weights = torch.cat([torch.ones(EDGES), torch.full((len(loops),), 2)]).double()
    plain = layers.GCNConv(4, 3, add_self_loops=False, bias=False).double()
    plain.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x, EDGE_INDEX), plain(x, edges, weights))


def test_a_cached_gcn_layer_keeps_the_graph_of_its_first_call():
    layer, x = layers.GCNConv(4, 3, cached=True), torch.randn(SOURCES, 4)
    first = layer(x, EDGE_INDEX)
    assert torch.equal(layer(x, EDGE_INDEX.flip(0)), first)
    weights = layer.state_dict()
    layer.reset_parameters()
    layer.load_state_dict(weights)
    other = layers.GCNConv(4, 3)
    other.load_state_dict(weights)
    assert torch.equal(layer(x, EDGE_INDEX.flip(0)), other(x, EDGE_INDEX.flip(0)))


def test_targets_without_features_are_counted_by_the_size_or_the_matrix():
    layer, x = layers.SAGEConv((4, 6), 3), torch.randn(SOURCES, 4)
    dense = torch.zeros(TARGETS, SOURCES).index_put((EDGE_INDEX[1], EDGE_INDEX[0]), torch.ones(1))
    matrix = torch.nn.functional.normalize(dense, p=1).to_sparse_coo()
    edges = EDGE_INDEX[:, :-1]
    expected = layer.lin_l(dense @ x / dense.sum(1, keepdim=True).clamp(min=1))
    torch.testing.assert_close(layer((x, None), edges, (SOURCES, TARGETS)), expected)
    torch.testing.assert_close(layer((x, None), matrix), expected)


@pytest.mark.parametrize("is_kept", [False, True])
def test_relational_layers_need_features_of_targets(is_kept):
    layer, x = layers.RGCNConv(4, 3, 3), torch.randn(SOURCES, 4)
    size = SOURCES, TARGETS
    pairs = relation_pairs(EDGE_INDEX, RELATIONS, size, 3) if is_kept else EDGE_INDEX
    with pytest.raises(ArgumentError, match=r"'x\[1\]'") as caught:
        layer((x, None), pairs, RELATIONS)
    assert caught.value.code == "operand.kind"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda x: layers.SAGEConv(-1, 4), "operand.range"),
        (lambda x: layers.SAGEConv(4, 4)((x, None), EDGE_INDEX), "layer.options"),
        (lambda x: layers.SAGEConv(4, 4)((x, x), EDGE_INDEX, (7, 5)), "operand.shape"),
        (lambda x: layers.SAGEConv((4, 6), 4)((x, x), EDGE_INDEX), "operand.shape"),
        (lambda x: layers.SAGEConv(3, 4)(x, EDGE_INDEX), "operand.shape"),
        (lambda x: layers.GCNConv(4, 4)((x, x), EDGE_INDEX), "operand.kind"),
        (lambda x: layers.GCNConv(4, 4)(x, EDGE_INDEX, torch.ones(9)), "operand.shape"),
        (lambda x: layers.GCNConv(4, 4)(x, EDGE_INDEX, torch.ones(2, 8)), "operand.shape"),
        (lambda x: layers.GATConv(4, 4)(x, EDGE_INDEX, torch.ones(8, 2)), "layer.options"),
        (lambda x: layers.GATConv(4, 4, edge_dim=3)(x, EDGE_INDEX, x), "operand.shape"),
        (lambda x: layers.GATConv(4, 4, fill_value="max"), "layer.fill_value"),
        (lambda x: layers.RGCNConv(4, 4, 3, 2, 2), "layer.options"),
        (lambda x: layers.RGCNConv(4, 4, 3, num_blocks=3), "layer.options"),
        (lambda x: layers.RGCNConv(4, 4, 3)(None, EDGE_INDEX, RELATIONS), "operand.kind"),
        (lambda x: layers.RGCNConv(4, 4, 3)(x[:, 0].long(), EDGE_INDEX), "operand.dtype"),
    ],
)
def test_bad_arguments_are_refused(call, code):
    with pytest.raises(ArgumentError) as caught:
        call(torch.ones(SOURCES, 4))
    assert caught.value.code == code
