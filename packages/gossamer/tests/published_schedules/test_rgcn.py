"""Relational graph convolution as published: the weights of a relation and the row sums of a relation are
cached, and the sums are added to those of the other relations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stepwise_schedules import integers, require_schedule, scheduled, step

from gossamer_ir.errors import ScheduleError
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
    """Relations without rows, rows without neighbors, and nodes that no relation contains."""
    random = np.random.default_rng(nodes + relations)
    rows = [np.flatnonzero(random.random(nodes) < 0.6) for _ in range(relations)]
    rows[1:2] = [np.array([], int)] * len(rows[1:2])
    neighbors = [
        np.flatnonzero(random.random(nodes) < 0.4) for stored_rows in rows for _ in stored_rows
    ]
    a = integers(random, sum(map(len, neighbors)))
    w, x = integers(random, relations, wide_in, wide_out), integers(random, nodes, wide_in)
    y = np.full((nodes, wide_out), 77, np.float32)
    expected = y.copy()
    expected[np.concatenate([*rows, []]).astype(int)] = 0
    indptr_i = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    indptr_j = np.cumsum([0, *map(len, neighbors)]).astype(np.int32)
    for relation, relation_rows in enumerate(rows):
        for number, row in enumerate(relation_rows, start=indptr_i[relation]):
            values = a[indptr_j[number] : indptr_j[number + 1]]
            expected[row] += values @ x[neighbors[number]] @ w[relation]
    return {
        "a": a, "w": w, "x": x, "y": y, "n": nodes, "r": relations, "feat_in": wide_in,
        "feat_out": wide_out, "indptr_i": indptr_i, "indptr_j": indptr_j, "nnz_i": len(neighbors),
        "nnz_j": len(a), "indices_i": np.concatenate([*rows, []]).astype(np.int32),
        "indices_j": np.concatenate([*neighbors, []]).astype(np.int32),
    }, {"y": expected}  # fmt: skip


CASES = [case(0, 2, 3, 4), case(5, 3, 2, 9), case(4, 1, 0, 8), case(6, 2, 3, 0)]


def test_rows_of_relations_that_meet():
    module = parse_module(script("rgcn_heterogeneous"))
    require_schedule(module, CASES, coordinate=COORDINATE, loop=STEPS)


@pytest.mark.parametrize("loop", ["r_1", "i"])
def test_rows_of_relations_are_added_up_at_once(loop: str) -> None:
    """Relations run in parallel, as blocks of threads do; or the rows of one relation, which share its
    weights."""
    accumulate = {"accumulate": "atomic"} if loop == "r_1" else {}
    shared = (step("set_scope", "W_data_local", scope="global"),) if loop == "i" else ()
    steps = (*STEPS, *shared, step("parallel", loop, **accumulate))
    module = parse_module(script("rgcn_heterogeneous"))
    require_schedule(module, CASES, coordinate=COORDINATE, loop=steps)


def test_relations_whose_rows_meet_share_elements() -> None:
    module = parse_module(script("rgcn_heterogeneous"))
    steps = (*STEPS, step("parallel", "r_1"))
    with pytest.raises(ScheduleError) as caught:
        scheduled(module, coordinate=COORDINATE, loop=steps)
    assert caught.value.code == "schedule.parallel.not_proved"


BUCKET = """
@T.prim_func
def rgcn(a: T.handle, w: T.handle, x: T.handle, y: T.handle, indptr: T.handle, rows: T.handle,
         columns: T.handle, n: T.int64, r: T.int64, feat_in: T.int64, feat_out: T.int64,
         groups: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    R = T.sp.dense_fixed(r)
    IO = T.sp.dense_varied(R, (groups, groups), indptr)
    II = T.sp.compressed_fixed(IO, (n, 2), rows, sorted=False, unique=False, padded=False)
    J = T.sp.compressed_fixed(II, (n, 3), columns, sorted=False, unique=False)
    N = T.sp.dense_fixed(n)
    N_in = T.sp.dense_fixed(n)
    F_in = T.sp.dense_fixed(feat_in)
    F_out = T.sp.dense_fixed(feat_out)
    A = T.sp.match_buffer(a, (R, IO, II, J), "float32")
    W = T.sp.match_buffer(w, (R, F_in, F_out), "float32")
    X = T.sp.match_buffer(x, (N_in, F_in), "float32")
    Y = T.sp.match_buffer(y, (N, F_out), "float32")
    with T.sp.iteration([F_out, R, IO, II, J, F_in], "SSSSRR", "rgcn") as [fo, e, io, ii, j, fi]:
        Y[ii, fo] = Y[ii, fo] + A[e, io, ii, j] * W[e, fi, fo] * X[j, fi]
"""
FUSED = (
    step("sparse_reorder", "rgcn", order=("e", "io", "ii", "j", "fo", "fi")),
    step("sparse_fuse", "rgcn", axes=("R", "IO")),
)
COMPOSABLE = (
    step("split", "fo", factors=(None, 4)),
    step("reorder", "e_io", "ii", "fo_0", "j", "fi", "fo_1"),
    step("reindex_cache_write", "rgcn", buffer="Y_data", scope="local"),
    step("reverse_compute_at", "rgcn_Y_data_local", loop="fo_0"),
    step("decompose_reduction", "rgcn", loop="j"),
    step("unroll", "j"),
    step("vectorize", "fo_1"),
    step("unroll", "ii"),
    step("parallel", "e_io", accumulate="atomic"),
)


def bucket_case(nodes: int, relations: int, wide_in: int, wide_out: int) -> Any:
    """Groups of two rows with at most three neighbors each; the last row of a relation is repeated, and some
    rows occur in several relations."""
    random = np.random.default_rng(nodes * 7 + relations)
    counts = random.integers(0, 4, relations) * (nodes > 0)
    groups = int(counts.sum())
    rows = random.integers(0, max(nodes, 1), (groups, 2)).astype(np.int32)
    columns = random.integers(0, nodes + 1, (groups, 2, 3)).astype(np.int32)
    a = integers(random, groups, 2, 3)
    w, x = integers(random, relations, wide_in, wide_out), integers(random, nodes, wide_in)
    y = integers(random, nodes, wide_out)
    expected, padded = y.copy(), np.vstack([x, np.zeros((1, wide_in), np.float32)])
    group_relations = np.repeat(np.arange(relations), counts)
    sums = np.einsum("gij,gijf->gif", a, padded[columns])
    np.add.at(expected, rows, np.einsum("gif,gfo->gio", sums, w[group_relations]))
    return {
        "a": a.ravel(), "w": w, "x": x, "y": y, "indptr": np.cumsum([0, *counts]).astype(np.int32),
        "rows": rows.ravel(), "columns": columns.ravel(), "n": nodes, "r": relations,
        "feat_in": wide_in, "feat_out": wide_out, "groups": groups,
    }, {"y": expected}  # fmt: skip


def test_buckets_of_relations():
    cases = [bucket_case(0, 2, 3, 4), bucket_case(5, 3, 2, 6), bucket_case(3, 4, 1, 4)]
    require_schedule(parse_module(BUCKET), cases, coordinate=FUSED, loop=COMPOSABLE)
