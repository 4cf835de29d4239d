"""The models of examples/models: training on generated graphs, and on Planetoid's where it is stored."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from examples.models.custom_operator import spread
from examples.models.node_classification import (
    Nodes,
    normalized_graph,
    normalized_rows,
    read_planetoid,
    train,
)


def communities(size):
    """Two communities with more edges inside than between, and a word of its own for most nodes of each."""
    rng = np.random.default_rng(0)
    of_node = np.arange(2 * size) // size
    is_edge = rng.random((2 * size, 2 * size)) < np.where(of_node[:, None] == of_node, 0.2, 0.02)
    edges = np.vstack(np.nonzero(np.triu(is_edge, 1)))
    both = np.hstack([edges, edges[::-1]])
    words = np.where(rng.random(2 * size) < 0.6, of_node, 1 - of_node)
    nodes = np.arange(2 * size)
    return Nodes(
        normalized_graph(both, 2 * size),
        normalized_rows(np.vstack([nodes, words]), (2 * size, 2)),
        torch.from_numpy(of_node),
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
    assert np.mean([train(nodes, seed=seed) for seed in range(4)]) > 0.81


def test_the_ends_of_edges_have_the_distance_of_the_custom_operator():
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    places = spread(edges)
    lengths = (places[edges[0]] - places[edges[1]]).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(4), atol=0.02, rtol=0)
