"""Cached copies, reindexed buffers, cached indices and epilogues, interpreted and as kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stepwise_schedules import integers, require_schedule, step

from gossamer_ir.errors import ScheduleError
from gossamer_ir.script import parse_module, print_module
from gossamer_lower import lower_iterations
from gossamer_schedule import ScheduleBuilder

IN_PLACE = """
@T.prim_func
def in_place(p: T.handle, x: T.handle, y: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(in_range(P, 0, m))
    for i in T.serial(n):
        with T.block("scatter"):
            vi = T.axis.reduce(n, i)
            if X[vi] > 0.0:
                Y[T.int64(P[vi])] = Y[T.int64(P[vi])] * 2.0 + X[vi]
"""


@pytest.mark.parametrize(("m", "n"), [(1, 0), (4, 9), (40, 3)])
def test_a_copy_that_is_worked_on_holds_what_the_block_leaves_as_it_is(m, n):
    random = np.random.default_rng(n)
    p, x, y = random.integers(0, m, n).astype(np.int32), integers(random, n), integers(random, m)
    expected = y.copy()
    for at, value in zip(p, x, strict=True):
        if value > 0:
            expected[at] = expected[at] * 2 + value
    arguments = {"p": p, "x": x, "y": y, "m": m, "n": n}
    steps = [step("cache_inplace", "scatter", buffer="Y", scope="local")]
    require_schedule(parse_module(IN_PLACE), [(arguments, {"y": expected})], loop=steps)


SHIFT = """
@T.prim_func
def shift(y: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (m, n + 1), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("shift"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj + 1] = Y[vi, vj + 1] + Y[vi, vj]
"""


@pytest.mark.parametrize(("m", "n"), [(0, 3), (3, 0), (3, 5)])
def test_values_of_earlier_iterations_are_seen_in_the_copy(m, n):
    y = integers(np.random.default_rng(m), m, n + 1)
    arguments = {"y": y, "m": m, "n": n}
    steps = [step("cache_inplace", "shift", buffer="Y", scope="global"), step("parallel", "i_c")]
    require_schedule(parse_module(SHIFT), [(arguments, {"y": np.cumsum(y, axis=1)})], loop=steps)


ROWS = """
@T.prim_func
def rows(indptr: T.handle, a: T.handle, y: T.handle, m: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    J = T.match_buffer(indptr, (m + 1,), "int32")
    A = T.match_buffer(a, (nnz,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(monotone(J))
    T.assume(in_range(J, 0, nnz + 1))
    for i in T.serial(m):
        for j in T.serial(T.int64(J[i + 1]) - T.int64(J[i])):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                T.where(A[T.int64(J[vi]) + vj] != 2.0)
                Y[vi] = Y[vi] + A[T.int64(J[vi]) + vj]
"""


def ragged(m: int, most: int) -> tuple[Any, Any]:
    random = np.random.default_rng(m)
    counts = random.integers(0, most, m)
    counts[:1] = 0
    indptr = np.cumsum([0, *counts]).astype(np.int32)
    return indptr, integers(random, int(indptr[-1]))


@pytest.mark.parametrize(("m", "most"), [(0, 1), (4, 1), (9, 5)])
def test_ragged_rows_under_a_condition_are_worked_on_in_a_copy(m, most):
    indptr, a = ragged(m, most)
    y = integers(np.random.default_rng(1), m)
    kept = np.where(a == 2, 0, a)
    sums = [part.sum() for part in np.split(kept, indptr[1:-1])] if m else []
    arguments = {"indptr": indptr, "a": a, "y": y, "m": m, "nnz": len(a)}
    steps = [step("cache_inplace", "sum", buffer="Y", scope="local")]
    expected = (y + np.array(sums, np.float32)).astype(np.float32)
    require_schedule(parse_module(ROWS), [(arguments, {"y": expected})], loop=steps)


SPMM = """
@T.prim_func
def csrmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
          m: T.int64, n: T.int64, nnz: T.int64, k: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, l]:
        with T.init():
            C[i, l] = 0.0
        C[i, l] = C[i, l] + A[i, j] * B[j, l]
"""


def sparse_case(m: int, n: int, k: int) -> tuple[Any, Any]:
    random = np.random.default_rng(m)
    dense = integers(random, m, n) * (random.random((m, n)) < 0.4)
    dense[: m // 3] = 0
    coordinates, b = dense.nonzero(), integers(random, n, k)
    counts = (dense != 0).sum(1)
    arguments = {
        "indptr": np.cumsum([0, *counts]).astype(np.int32), "indices": coordinates[1].astype(np.int32),
        "a": dense[coordinates].astype(np.float32), "b": b, "c": np.full((m, k), 77, np.float32),
        "m": m, "n": n, "nnz": int(counts.sum()), "k": k,
    }  # fmt: skip
    return arguments, {"c": (dense @ b).astype(np.float32)}


SPARSE = {
    "indices that rows share, at the position stage": {
        "position": [step("cache_index", "csrmm", scope="local", buffer="B")]
    },
    "all indices, at the loop stage": {
        "loop": [
            step("cache_index", "csrmm", scope="global"),
            step("compute_at", "csrmm_index_fill", loop="i"),
        ]
    },
    "indices of rows that run at once": {
        "loop": [
            step("parallel", "i"),
            step("cache_index", "csrmm", scope="global", buffer="B_data"),
        ]
    },
    "gathered rows and transposed results": {
        "position": [step("reindex", "csrmm", buffer="B", order=("vl", "vj"))],
        "loop": [step("reindex", "csrmm", buffer="C_data", order=("vl", "vi"))],
    },
}


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("sizes", [(0, 3, 2), (5, 4, 0), (3, 1, 1), (11, 7, 5)])
def test_sparse_product(name, sizes):
    require_schedule(parse_module(SPMM), [sparse_case(*sizes)], **SPARSE[name])


FUSED_SUMS = """
@T.prim_func
def fused_sums(x: T.handle, y: T.handle, indptr_j: T.handle, indptr_k: T.handle,
               n: T.int64, most: T.int64, nnz_j: T.int64, nnz_k: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_varied(I, (most, nnz_j), indptr_j, "int32")
    K = T.sp.dense_varied(J, (most, nnz_k), indptr_k, "int32")
    X = T.sp.match_buffer(x, (I, J, K), "float32")
    Y = T.sp.match_buffer(y, (I, J), "float32")
    with T.sp.iteration([T.sp.fuse(I, J), K], "SSR", "sum") as [i, j, k]:
        with T.init():
            Y[i, j] = 0.0
        Y[i, j] = Y[i, j] + X[i, j, k]
"""


def test_a_copy_is_over_the_iterators_that_select_the_element_only():
    x = np.array([3, -1, -3, 1, 2], np.float32)
    arguments = {
        "x": x, "y": np.full(3, 7, np.float32), "indptr_j": np.array([0, 0, 3], np.int32),
        "indptr_k": np.array([0, 4, 4, 5], np.int32), "n": 2, "most": 4, "nnz_j": 3, "nnz_k": 5,
    }  # fmt: skip
    steps = [
        step("split", "k", factors=(None, 2, 4)),
        step("unroll", "k_2"),
        step("reindex", "sum", buffer="J_indptr"),
    ]
    expected = np.array([0, 0, 2], np.float32)
    require_schedule(parse_module(FUSED_SUMS), [(arguments, {"y": expected})], position=steps)
    builder = ScheduleBuilder(lower_iterations(parse_module(FUSED_SUMS)))
    builder.reindex("sum", buffer="J_indptr")
    assert "J_indptr_reindex[vi_j]" in print_module(builder.module)


SCALED_ROWS = """
@T.prim_func
def scaled_rows(x: T.handle, y: T.handle, indptr_i: T.handle, indptr_j: T.handle,
                b: T.int64, most: T.int64, nnz_i: T.int64, nnz_j: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    B = T.sp.dense_fixed(b)
    I = T.sp.dense_varied(B, (most, nnz_i), indptr_i, "int32")
    J = T.sp.dense_varied(I, (most, nnz_j), indptr_j, "int32")
    X = T.sp.match_buffer(x, (B, I, J), "float32")
    Y = T.sp.match_buffer(y, (B, I, J), "float32")
    with T.sp.iteration([B, T.sp.fuse(I, J)], "SSS", "scale") as [k, i, j]:
        Y[k, i, j] = X[k, i, j] * 2.0
"""


def test_declared_regions_of_another_name_of_an_index_buffer_are_lowered():
    x = np.arange(5, dtype=np.float32)
    arguments = {
        "x": x, "y": np.full(5, 7, np.float32), "indptr_i": np.array([0, 0, 3], np.int32),
        "indptr_j": np.array([0, 4, 4, 5], np.int32), "b": 2, "most": 4, "nnz_i": 3, "nnz_j": 5,
    }  # fmt: skip
    steps = [step("hide_buffer_access", "scale", access="read", buffers=("X",))]
    later = [step("annotate", "scale", key="note", value=1)]
    case = (arguments, {"y": 2 * x})
    require_schedule(parse_module(SCALED_ROWS), [case], position=steps, loop=later)


LOOKED_UP = """
@T.prim_func
def looked_up(p: T.handle, q: T.handle, x: T.handle, y: T.handle, n: T.int64, m: T.int64,
              k: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    X = T.match_buffer(x, (m, k), "float32")
    Y = T.match_buffer(y, (n, k), "float32")
    T.assume(in_range(P, 0, m))
    for i in T.serial(n):
        for j in T.serial(k):
            with T.block("pick"):
                vi, vj = T.axis.remap("SS", [i, j])
                if Q[vi] > 0:
                    Y[vi, vj] = X[T.int64(P[T.int64(Q[vi])]), vj]
"""


def test_an_index_that_may_not_exist_is_not_computed_before():
    module = parse_module(LOOKED_UP)
    with pytest.raises(ScheduleError) as raised:
        ScheduleBuilder(module).cache_index("pick", scope="local")
    assert raised.value.code == "schedule.cache_index.not_proved"
    shorter = parse_module(
        LOOKED_UP.replace("T.int64(P[T.int64(Q[vi])])", "T.int64(P[vi]) // T.int64(Q[vi])")
    )
    random = np.random.default_rng(3)
    p = random.integers(0, 4, 6).astype(np.int32)
    q = np.array([1, 0, -1, 2, 0, 5], np.int32)
    x, y = integers(random, 4, 3), integers(random, 6, 3)
    arguments = {"p": p, "q": q, "x": x, "y": y, "n": 6, "m": 4, "k": 3}
    expected = np.where(q[:, None] > 0, x[p // np.maximum(q, 1)], y)
    steps = [step("cache_index", "pick", scope="local")]
    require_schedule(shorter, [(arguments, {"y": expected})], loop=steps)


EPILOGUE = """
@T.prim_func
def epilogue(indptr: T.handle, a: T.handle, b: T.handle, y: T.handle, m: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    J = T.match_buffer(indptr, (m + 1,), "int32")
    A = T.match_buffer(a, (nnz,), "float32")
    B = T.match_buffer(b, (m,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    S = T.decl_buffer((m,), "float32")
    T.assume(monotone(J))
    T.assume(in_range(J, 0, nnz + 1))
    for i in T.serial(m):
        for j in T.serial(T.int64(J[i + 1]) - T.int64(J[i])):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = START
                S[vi] = REDUCED
    for k in T.serial(m):
        with T.block("after"):
            vk = T.axis.spatial(m, k)
            Y[vk] = AFTER
"""
TERM = "A[T.int64(J[vi]) + vj]"
EPILOGUES = {
    "a bias": ("0.0", f"S[vi] + {TERM}", "S[vk] + B[vk]", np.add, 0, lambda s, b: s + b),
    "a difference": ("3.0", f"S[vi] + {TERM}", "S[vk] - B[vk]", np.add, 3, lambda s, b: s - b),
    "a bound": (
        "T.float32('inf')", f"T.min(S[vi], {TERM})", "T.min(B[vk], S[vk])", np.minimum, np.inf,
        np.minimum,
    ),
    "a factor": ("2.0", f"S[vi] * {TERM}", "B[vk] * S[vk]", np.multiply, 2, lambda s, b: s * b),
}  # fmt: skip


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize(("m", "most"), [(0, 1), (3, 1), (9, 5)])
@pytest.mark.parametrize("around", [False, True])
def test_an_epilogue_is_what_the_reduction_starts_from(name, m, most, around):
    start, reduced, after, combined, first, last = EPILOGUES[name]
    text = EPILOGUE.replace("START", start).replace("REDUCED", reduced).replace("AFTER", after)
    if around:
        head, tail = text.split("    for k in T.serial(m):\n")
        text = head + tail.replace("T.axis.spatial(m, k)", "T.axis.spatial(m, i)")
    indptr, a = ragged(m, most)
    b = integers(np.random.default_rng(2), m)
    sums = [combined.reduce(row, initial=first) for row in np.split(a, indptr[1:-1])] if m else []
    arguments = {"indptr": indptr, "a": a, "b": b, "y": np.full(m, 7, np.float32), "m": m}
    expected = last(np.array(sums, np.float32), b).astype(np.float32)
    steps = [step("fuse_reduction_epilogue", "sum", epilogue="after"), step("parallel", "i")]
    case = (arguments | {"nnz": len(a)}, {"y": expected})
    require_schedule(parse_module(text), [case], loop=steps)


DIAGONAL_FIBERS = """
@T.prim_func
def diagonal(
    jp: T.handle, kp: T.handle, ki: T.handle, x: T.handle, y: T.handle,
    m: T.int64, w: T.int64, n: T.int64,
):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (w, 5), jp, "int32")
    K = T.sp.compressed_varied(J, n, (kp, ki), indptr_dtype="int32", indices_dtype="int32")
    N = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (N,), "float32")
    with T.sp.iteration([I, T.sp.attach(K, I)], "SR", "diagonal") as [i, k]:
        Y[k] = Y[k] + X[k]
"""


@pytest.mark.parametrize(
    "steps",
    [
        [step("reindex", "diagonal", buffer="Y_data")],
        [step("reindex", "diagonal", buffer="X_data")],
        [step("reindex_cache_write", "diagonal", buffer="Y_data", scope="local")],
        [
            step("loop_version", "k", condition="i == 2"),
            step("reindex", "diagonal_0", buffer="Y_data"),
        ],
    ],
)
def test_copies_visit_no_fiber_that_does_not_exist(steps):
    """Row i has a fiber K only if it has more than i elements of J."""
    jp, kp = np.array([0, 2, 3, 5, 5]), np.array([0, 3, 4, 4, 6, 8])
    ki = np.array([0, 2, 3, 1, 0, 3, 1, 2])
    random = np.random.default_rng(1)
    x, y = integers(random, 4), integers(random, 4)
    expected = y.copy()
    for row in range(4):
        if row < jp[row + 1] - jp[row]:
            begin, end = kp[jp[row] + row : jp[row] + row + 2]
            np.add.at(expected, ki[begin:end], x[ki[begin:end]])
    arrays = {"jp": jp, "kp": kp, "ki": ki}
    arguments = {name: array.astype(np.int32) for name, array in arrays.items()}
    arguments |= {"x": x, "y": y, "m": 4, "w": 5, "n": 4}
    require_schedule(parse_module(DIAGONAL_FIBERS), [(arguments, {"y": expected})], loop=steps)
