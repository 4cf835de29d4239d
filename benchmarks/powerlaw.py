"""A generated graph whose degrees follow a power law."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def power_law(nodes: int, edges: int, *, exponent: float = 2.1, seed: int = 0) -> sparse.csr_matrix:
    """A directed graph of about `edges` edges: both ends of an edge are drawn with probability
    proportional to a weight of their node, and the weights follow a power law (Chung and Lu,
    "Connected components in random graphs with given expected degree sequences", 2002).

    Nodes are in random order, edges unique, values in [0.5, 1.5), float32 with int32 indices.
    """
    random = np.random.default_rng(seed)
    weights = (1.0 + np.arange(nodes)) ** (-1.0 / (exponent - 1.0))
    cumulative = np.cumsum(weights / weights.sum())
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < edges:
        draw = random.random((2, edges + edges // 4))
        ends = np.minimum(np.searchsorted(cumulative, draw), nodes - 1)
        keys = np.unique(np.concatenate([keys, ends[0] * nodes + ends[1]]))
    keys = random.choice(keys, edges, replace=False)
    rows, columns = (
        random.permutation(nodes)[keys // nodes],
        random.permutation(nodes)[keys % nodes],
    )
    values = (0.5 + random.random(edges)).astype(np.float32)
    graph = sparse.csr_matrix((values, (rows, columns)), shape=(nodes, nodes))
    graph.sort_indices()
    return graph
