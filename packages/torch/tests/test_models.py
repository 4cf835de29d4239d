"""The models of examples/models: training on generated data, and on Planetoid's where it is stored."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from examples.models import link_prediction, pruned_transformer
from examples.models.custom_operator import place_nodes
from examples.models.node_classification import (
    SEEDS,
    Nodes,
    normalized_graph,
    normalized_rows,
    read_planetoid,
    train,
)


def communities(size):
    """Two communities with more edges inside than between, and a word of its own for most nodes of each."""
    rng = np.random.default_rng(0)
    node_classes = np.arange(2 * size) // size
    is_edge = rng.random((2 * size, 2 * size)) < np.where(
        node_classes[:, None] == node_classes, 0.2, 0.02
    )
    edges = np.vstack(np.nonzero(np.triu(is_edge, 1)))
    both = np.hstack([edges, edges[::-1]])
    words = np.where(rng.random(2 * size) < 0.6, node_classes, 1 - node_classes)
    nodes = np.arange(2 * size)
    return Nodes(
        normalized_graph(both, 2 * size),
        normalized_rows(np.vstack([nodes, words]), (2 * size, 2)),
        torch.from_numpy(node_classes),
        torch.tensor([0, 1, size, size + 1]),
        torch.arange(2 * size),
    )


def test_a_network_finds_communities_of_which_it_knows_two_nodes():
    assert train(communities(60), epochs=40) > 0.9


@pytest.mark.filterwarnings("ignore:Please import:DeprecationWarning")
def test_cora_is_classified_as_in_the_literature():
    folder = Path(os.environ.get("GOSSAMER_DATASETS", "."))
    if not (folder / "ind.cora.graph").exists():
        pytest.skip(f"{folder} has no files ind.cora.* (GOSSAMER_DATASETS names the folder)")
    nodes = read_planetoid(folder)
    assert np.mean([train(nodes, seed=seed) for seed in SEEDS]) > 0.81


def test_the_ends_of_edges_have_the_distance_of_the_custom_operator():
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    places = place_nodes(edges)
    lengths = (places[edges[0]] - places[edges[1]]).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(4), atol=0.02, rtol=0)


def test_tails_are_predicted_better_than_by_their_frequencies():
    triples = link_prediction.generated_triples()
    mrr = link_prediction.compare_scores(triples, epochs=12)
    # Heads have about five tails of a relation that are not stored, which no model tells from the others.
    assert mrr["RGCN and DistMult"] > 0.2 > 2 * mrr["frequencies of tails"]


def test_ranks_of_tails_leave_out_stored_triples_and_halve_equal_ones():
    train = torch.tensor([[0, 0, 1]])
    test = torch.tensor([[0, 0, 2]])
    triples = link_prediction.Triples(train, test, entities=4, relations=1)
    # The stored tail 1 does not count; 3 is before 2, and 0 is as good as 2.
    scores = torch.tensor([[1.0, 9.0, 1.0, 5.0]])
    assert link_prediction.filtered_mrr(triples, lambda _: scores.clone()) == pytest.approx(1 / 2.5)


def test_a_transformer_keeps_its_results_with_sparse_layers():
    _, zeros, sparse = pruned_transformer.compare_layers(width=32, sparsity=0.9, steps=100)
    assert sparse.accuracy == zeros.accuracy > 0.95
    assert sparse.difference < 1e-4
