"""SDDMM as published: over all elements, each product in two stages, its operands and results cached."""

from __future__ import annotations

from typing import Any

import numpy as np
from recipes import integers, require_recipe, step
from scipy import sparse

from gossamer_ir.script import parse_module
from gossamer_testkit import script

ELEMENTS = (step("sparse_fuse", "sddmm", axes=("I", "J")),)
TWO_STAGES = (
    step("split", "k", factors=(None, 2, 4)),
    step("rfactor", "k_2", axis=1),
    step("split", "i_j", factors=(None, 3, 2)),
    step("reorder", "i_j_0", "i_j_1", "k_0", "i_j_2", "k_1", "k_2"),
    step("reverse_compute_at", "sddmm", loop="i_j_1"),
    step("set_scope", "Y_data_rf", scope="local"),
    step("reindex_cache_read", "sddmm_rf", buffer="A_data", scope="local"),
    step("reindex_cache_read", "sddmm_rf", buffer="B_data", scope="local"),
    step("compute_at", "sddmm_rf_A_data_local", loop="i_j_2"),
    step("compute_at", "sddmm_rf_B_data_local", loop="i_j_2"),
    step("cache_write", "sddmm", buffer="Y_data", scope="local"),
    step("reverse_compute_at", "sddmm_Y_data_local", loop="i_j_1"),
    step("vectorize", "k_2"),
    step("vectorize", "k_2_c_1"),
    step("vectorize", "k_2_c_2"),
    step("unroll", "k_1"),
    step("unroll", "i_j_2"),
    step("parallel", "i_j_0"),
)


def matrix(rows: int, columns: int) -> Any:
    """Empty rows at both ends, one dense row."""
    random = np.random.default_rng(rows)
    dense = random.integers(1, 4, (rows, columns)) * (random.random((rows, columns)) < 0.3)
    if rows > 2:
        dense[0] = dense[-1] = 0
        dense[rows // 2] = 1
    return sparse.csr_matrix(dense.astype(np.float32))


def case(rows: int, columns: int, features: int) -> Any:
    random = np.random.default_rng(features)
    a, b = integers(random, rows, features), integers(random, columns, features)
    x = matrix(rows, columns)
    places = x.tocoo()
    arguments = {
        "a": a, "b": b, "x": x.data, "y": np.full(x.nnz, 77, np.float32), "indptr": x.indptr,
        "indices": x.indices, "m": rows, "n": columns, "feat_size": features, "nnz": x.nnz,
    }  # fmt: skip
    return arguments, {"y": (a[places.row] * b[places.col]).sum(1) * x.data}


SIZES = [(0, 3, 8), (7, 5, 13), (10, 4, 0), (11, 9, 8), (1, 7, 3)]


def test_two_stages():
    module = parse_module(script("sddmm"))
    cases = [case(*size) for size in SIZES]
    require_recipe(module, cases, coordinate=ELEMENTS, loop=TWO_STAGES)
