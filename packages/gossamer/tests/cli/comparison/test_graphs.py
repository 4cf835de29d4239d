"""Random graphs."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.cli.comparison.graphs import power_law
from gossamer_formats import to_scipy
from gossamer_ir.errors import UserError


@pytest.mark.parametrize("nodes", [1, 4, 1000])
def test_a_graph_has_exactly_its_edges_and_depends_on_the_seed_only(nodes):
    edges = nodes * nodes // 4 if nodes < 100 else 7000
    first, again, other = (power_law(nodes, edges, seed=seed) for seed in (1, 1, 2))
    assert first.nnz == to_scipy(first).nnz == edges
    assert first.description.axes[1].unique
    for name in first.arrays:
        np.testing.assert_array_equal(first.arrays[name], again.arrays[name])
    if nodes == 1000:
        assert not np.array_equal(first.arrays["indices"], other.arrays["indices"])


def test_degrees_follow_a_power_law():
    graph = to_scipy(power_law(20_000, 140_000))
    for degrees in (np.diff(graph.indptr), np.bincount(graph.indices, minlength=20_000)):
        heavy = np.sort(degrees)[::-1]
        assert heavy[0] > 40 * degrees.mean()
        slope = np.log(heavy[20] / heavy[2000]) / np.log(2000 / 20)
        assert 0.5 < slope < 1.0  # 1 / (exponent - 1) = 0.77


@pytest.mark.parametrize(("nodes", "edges"), [(0, 0), (-1, 0), (10, -1), (10, 26)])
def test_impossible_graphs_are_refused(nodes, edges):
    with pytest.raises(UserError) as caught:
        power_law(nodes, edges)
    assert caught.value.code == "graph.size"
