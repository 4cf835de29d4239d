"""Generated graphs whose degrees follow a power law.

`gossamer demo` and `gossamer run` use one if they are not given a matrix, so they are part of the installed
command. The benchmarks use them, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer_formats import SparseTensor, from_arrays
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import amount

GENERATED_GRAPH = "a generated power-law graph"
"""The name that commands give to a graph that they generate."""

EXPONENT = 2.3
"""The exponent of the degree distribution; citation and web graphs have 2.1 to 2.7."""


def power_law(
    nodes: int, edges: int, *, seed: int = 0, exponent: float = EXPONENT, dtype: str = "float32"
) -> SparseTensor:
    """Return the adjacency matrix of a directed graph with this number of distinct edges, values in (0, 1).

    Endpoints are drawn independently, each node with a probability proportional to its expected degree
    (F. Chung and L. Lu, 2002); nodes are in random order. The same seed gives the same graph.

    >>> power_law(1000, 5000)
    SparseTensor(csr, 1000 by 1000, 5000 nonzeros, float32, 43 KiB)
    """
    if nodes < 1 or not 0 <= edges <= nodes * nodes // 4:
        raise ArgumentError(
            "graph.size",
            f"A sparse graph cannot have {amount(nodes, 'node')} and {amount(edges, 'edge')}; expected at "
            "least one node and edges up to a quarter of all pairs.",
        )
    random = np.random.default_rng(seed)
    pairs = _distinct_pairs(random, _shares(nodes, exponent), edges=edges)
    sources, targets = np.divmod(pairs, nodes)
    indptr = np.zeros(nodes + 1, dtype=np.int32)
    np.cumsum(np.bincount(sources, minlength=nodes), out=indptr[1:])
    return from_arrays(
        "csr",
        (nodes, nodes),
        indptr=indptr,
        indices=targets.astype(np.int32),
        data=random.uniform(0.1, 1.0, size=edges).astype(dtype),
    )


def _shares(nodes: int, exponent: float) -> npt.NDArray[np.float64]:
    """Return the cumulative probabilities of the nodes; the offset limits the largest degree."""
    rank = np.arange(nodes) + nodes**0.2
    expected = rank ** (-1.0 / (exponent - 1.0))
    return np.cumsum(expected / expected.sum())


def _distinct_pairs(
    random: np.random.Generator, shares: npt.NDArray[np.float64], *, edges: int
) -> npt.NDArray[np.int64]:
    """Return sorted distinct pairs as source * nodes + target, drawn until there are enough."""
    nodes = shares.size
    order = random.permutation(nodes)
    pairs = np.empty(0, dtype=np.int64)
    while pairs.size < edges:
        # A sixteenth more than needed, as some pairs occur twice.
        missing = edges - pairs.size
        chances = random.random((2, missing + missing // 16 + 16))
        chances[0].sort()
        sources, targets = order[np.minimum(np.searchsorted(shares, chances), nodes - 1)]
        pairs = np.sort(np.concatenate((pairs, sources * nodes + targets)))
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    # At random, since the first pairs are those of the first nodes.
    surplus = random.choice(pairs.size, size=pairs.size - edges, replace=False)
    return np.delete(pairs, surplus)
