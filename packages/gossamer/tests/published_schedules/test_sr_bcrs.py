"""SR-BCRS times dense as published: row stripes, column groups, and a cache for the gathered rows of the
dense operand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stepwise_schedules import integers, require_schedule, step

from gossamer_ir.script import parse_module

TILE, GROUP = 4, 8
SR_BCRS = """
@T.prim_func
def srbcrs(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
           mb: T.int64, n: T.int64, groups: T.int64, most: T.int64, features: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.dense_varied(IO, (most, groups), indptr)
    II = T.sp.dense_fixed(4)
    JI = T.sp.compressed_fixed(JO, (n, 8), indices, sorted=False, unique=False)
    N = T.sp.dense_fixed(n)
    F = T.sp.dense_fixed(features)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    B = T.sp.match_buffer(b, (N, F), "float32")
    C = T.sp.match_buffer(c, (IO, II, F), "float32")
    with T.sp.iteration([IO, JO, II, JI, F], "SRSRS", "spmm") as [io, jo, ii, ji, f]:
        with T.init():
            C[io, ii, f] = 0.0
        C[io, ii, f] = C[io, ii, f] + A[io, jo, ii, ji] * B[ji, f]
"""
STEPS = (
    step("split", "f", factors=(None, 2, 8)),
    step("reorder", "io", "f_0", "jo", "f_1", "ii", "ji", "f_2"),
    step("cache_read", "spmm", buffer="A_data", scope="local"),
    step("compute_at", "spmm_A_data_local", loop="jo"),
    step("reindex_cache_read", "spmm", buffer="B_data", scope="local", order=("vjo", "vji", "vf")),
    step("compute_at", "spmm_B_data_local", loop="f_1"),
    step("cache_write", "spmm", buffer="C_data", scope="local"),
    step("reverse_compute_at", "spmm_C_data_local", loop="f_0"),
    step("decompose_reduction", "spmm", loop="jo"),
    step("unroll", "ii"),
    step("vectorize", "f_2"),
    step("vectorize", "f_c"),
    step("parallel", "io"),
)


def case(stripes: int, columns: int, features: int) -> Any:
    """Stripes with no column, with one, and with more than a group has; the last group is padded."""
    random = np.random.default_rng(stripes)
    dense = integers(random, stripes, TILE, columns)
    kept = [np.flatnonzero(random.random(columns) < at / stripes) for at in range(stripes)]
    counts = [-(-len(columns) // GROUP) for columns in kept]
    indptr = np.cumsum([0, *counts]).astype(np.int32)
    indices = np.full((indptr[-1], GROUP), columns, np.int32)
    values = np.full((indptr[-1], TILE, GROUP), np.nan, np.float32)
    b = integers(random, columns, features)
    expected = np.zeros((stripes, TILE, features), np.float32)
    for number, kept_columns in enumerate(kept):
        for slot, column in enumerate(kept_columns):
            group, place = indptr[number] + slot // GROUP, slot % GROUP
            indices[group, place] = column
            values[group, :, place] = dense[number, :, column]
        expected[number] = dense[number][:, kept_columns] @ b[kept_columns]
    arguments = {
        "a": values, "b": b, "c": np.full(expected.shape, 77, np.float32), "indptr": indptr,
        "indices": indices, "mb": stripes, "n": columns, "groups": int(indptr[-1]),
        "most": max(counts, default=0), "features": features,
    }  # fmt: skip
    return arguments, {"c": expected}


def test_gathers_into_a_cache():
    cases = [case(*size) for size in ((0, 5, 8), (5, 30, 13), (3, 9, 0), (4, 17, 16))]
    require_schedule(parse_module(SR_BCRS), cases, loop=STEPS)
