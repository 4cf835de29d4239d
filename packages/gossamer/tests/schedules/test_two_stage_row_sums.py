"""Two-stage sums over rows of different lengths: equal contiguous parts of each row, then their sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from stepwise_schedules import integers, require_schedule, step

from gossamer_ir.errors import ScheduleError
from gossamer_ir.script import parse_module
from gossamer_schedule import ScheduleBuilder

SPMM = """
@T.prim_func
def spmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle, m: T.int64,
         n: T.int64, features: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""


def case(rows: int, columns: int, features: int) -> Any:
    """Empty rows at both ends, rows shorter than the number of parts, one dense row."""
    random = np.random.default_rng(rows)
    dense = integers(random, rows, columns) * (random.random((rows, columns)) < 0.4)
    if rows > 2:
        dense[0] = dense[-1] = 0
        dense[rows // 2] = np.arange(columns) % 5 + 1
    a, b = sparse.csr_matrix(dense.astype(np.float32)), integers(random, columns, features)
    arguments = {
        "a": a.data, "b": b, "c": np.full((rows, features), 77, np.float32), "indptr": a.indptr,
        "indices": a.indices, "m": rows, "n": columns, "features": features, "nnz": a.nnz,
    }  # fmt: skip
    return arguments, {"c": a @ b}


CASES = [case(0, 3, 2), case(7, 5, 3), case(6, 17, 4), case(3, 4, 0)]


@pytest.mark.parametrize("stage", ["position", "loop"])
def test_parts_of_a_row_run_in_parallel(stage: str) -> None:
    steps = (
        step("split", "j", factors=(4, None)),
        step("rfactor", "j_0", axis=1),
        step("reorder", "i", "j_0", "k", "j_1"),
        step("parallel", "j_0"),
        step("parallel", "i"),
    )
    require_schedule(parse_module(SPMM), CASES, **{stage: steps})


def test_parts_of_a_row_are_combined_in_lanes() -> None:
    steps = (
        step("split", "j", factors=(8, None)),
        step("rfactor", "j_0", axis=2),
        step("reorder", "i", "k", "j_1", "j_0"),
        step("vectorize", "j_0_c"),
    )
    with pytest.raises(ScheduleError):  # the number of steps depends on the row, not on the part
        require_schedule(parse_module(SPMM), CASES, loop=(*steps, step("vectorize", "j_1")))
    require_schedule(parse_module(SPMM), CASES, loop=steps)


WRITTEN = """
@T.prim_func
def written(p: T.handle, a: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int64")
    A = T.match_buffer(a, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        for j_0 in T.serial(4):
            for j_1 in T.serial(P[i]):
                with T.block("sum"):
                    ITERATORS
                    T.where(vj < n)
                    with T.init():
                        Y[vi] = 0.0
                    Y[vi] = Y[vi] + A[vj]
    OTHER
"""
IN_ORDER = """vi = T.axis.spatial(n, i)
                    vj = T.axis.reduce(n, j_0 * P[i] + j_1)"""
BEHIND = """vj = T.axis.reduce(n, j_0 * P[i] + j_1)
                    vi = T.axis.spatial(n, i)"""
HALF = IN_ORDER.replace("spatial(n, i)", "spatial(n, i // 1)")
CHANGE = "for k in T.serial(n):\n        P[k] = 0"


@pytest.mark.parametrize(("iters", "other"), [(IN_ORDER, CHANGE), (BEHIND, ""), (HALF, "")])
def test_what_does_not_tell_how_long_parts_are_is_refused(iters: str, other: str) -> None:
    text = WRITTEN.replace("ITERATORS", iters).replace("OTHER", other)
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder(parse_module(text)).rfactor("j_0")
    assert caught.value.code == "schedule.rfactor.mixed"


def test_lengths_may_be_of_any_array() -> None:
    text = WRITTEN.replace("ITERATORS", IN_ORDER).replace("OTHER", "")
    random = np.random.default_rng(1)
    lengths = np.array([0, 2, 1, 3, 0, 9, 2, 2, 1, 1, 0, 5])
    a, y = integers(random, 12), np.full(12, 77, np.float32)
    expected = np.array(
        [
            sum(a[part * n + j] for part in range(4) for j in range(n) if part * n + j < 12)
            for n in lengths
        ],
        np.float32,
    )
    cases = [({"p": lengths, "a": a, "y": y, "n": 12}, {"y": expected})]
    steps = (step("rfactor", "j_0", axis=1), step("parallel", "j_0"))
    require_schedule(parse_module(text), cases, loop=steps)


def test_a_sum_along_diagonals() -> None:
    text = WRITTEN.replace("ITERATORS", IN_ORDER.replace("j_0 * P[i] + j_1", "i + j_0 + 4 * j_1"))
    text = text.replace("T.serial(P[i])", "T.serial(3)").replace("OTHER", "")
    a, y = integers(np.random.default_rng(2), 9), np.full(9, 77, np.float32)
    expected = np.array([a[i : i + 12].sum() for i in range(9)], np.float32)
    cases = [({"p": np.zeros(9, np.int64), "a": a, "y": y, "n": 9}, {"y": expected})]
    require_schedule(parse_module(text), cases, loop=(step("rfactor", "j_0"),))
