"""Relational graph convolution as published: the weights of a relation in a cache, the sums of a row of a
relation in another one, which is then added to what other relations gave."""

from __future__ import annotations

from typing import Any

import numpy as np
from recipes import integers, require_recipe, step

from gossamer_ir.script import parse_module
from gossamer_testkit import script

NAME = "rgcn_hetero_forward"
COORDINATE = (step("sparse_reorder", NAME, order=("r_1", "i", "fo", "j", "fi")),)
STEPS = (
    step("decompose_reduction", NAME, loop="r_1"),
    step("split", "fo", factors=(None, 8)),
    step("reorder", "fo_0", "j", "fi", "fo_1"),
    step("cache_read", NAME, buffer="W_data", scope="local"),
    step("compute_at", f"{NAME}_W_data_local", loop="r_1"),
    step("reindex_cache_read", NAME, buffer="X_data", scope="local"),
    step("compute_at", f"{NAME}_X_data_local", loop="j"),
    step("reindex_cache_write", NAME, buffer="Y_data", scope="local"),
    step("reverse_compute_at", f"{NAME}_Y_data_local", loop="fo_0"),
    step("vectorize", "fo_1"),
)


def case(nodes: int, relations: int, wide_in: int, wide_out: int) -> Any:
    """Relations with no rows, rows with no neighbours, nodes that no relation reaches."""
    random = np.random.default_rng(nodes + relations)
    rows = [np.flatnonzero(random.random(nodes) < 0.6) for _ in range(relations)]
    rows[1:2] = [np.array([], int)] * len(rows[1:2])
    neighbours = [np.flatnonzero(random.random(nodes) < 0.4) for found in rows for _ in found]
    a = integers(random, sum(map(len, neighbours)))
    w, x = integers(random, relations, wide_in, wide_out), integers(random, nodes, wide_in)
    y = np.full((nodes, wide_out), 77, np.float32)
    expected = y.copy()
    expected[np.concatenate([*rows, []]).astype(int)] = 0
    indptr_i = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    indptr_j = np.cumsum([0, *map(len, neighbours)]).astype(np.int32)
    for relation, found in enumerate(rows):
        for at, row in enumerate(found, start=indptr_i[relation]):
            values = a[indptr_j[at] : indptr_j[at + 1]]
            expected[row] += values @ x[neighbours[at]] @ w[relation]
    return {
        "a": a, "w": w, "x": x, "y": y, "n": nodes, "r": relations, "feat_in": wide_in,
        "feat_out": wide_out, "indptr_i": indptr_i, "indptr_j": indptr_j, "nnz_i": len(neighbours),
        "nnz_j": len(a), "indices_i": np.concatenate([*rows, []]).astype(np.int32),
        "indices_j": np.concatenate([*neighbours, []]).astype(np.int32),
    }, {"y": expected}  # fmt: skip


def test_rows_of_relations_that_meet():
    cases = [case(0, 2, 3, 4), case(5, 3, 2, 9), case(4, 1, 0, 8), case(6, 2, 3, 0)]
    module = parse_module(script("rgcn_heterogeneous"))
    require_recipe(module, cases, coordinate=COORDINATE, loop=STEPS)
