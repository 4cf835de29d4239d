"""Schedules with partitioned, distributed and versioned loops, padding and changed dtypes, natively,
against NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import gossamer
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule import ScheduleBuilder
from gossamer_testkit import examples


def main_and_tail(builder):
    builder.loop_partition("l", points=("k // 8 * 8",)).split("l_0", factors=(None, 8))
    return builder.vectorize("l_0_1")


PRODUCTS = {
    "in parts": lambda builder: builder.loop_partition("i", points=(1, "m // 2")).parallel("i_1"),
    "a reduction in parts": lambda builder: builder.loop_partition("j", points=(2, 2**62)),
    "vectors and a tail": main_and_tail,
    "a known size": lambda builder: (
        builder.loop_version("i", condition="k == 5 and m > 1").parallel("i_0").unroll("l_0")
    ),
    "whole vectors": lambda builder: (
        builder.loop_version("i", condition="k % 4 == 0")
        .split("l_0", factors=(None, 4))
        .vectorize("l_0_1")
    ),
    "rows by parity": lambda builder: builder.reorder("i", "l", "j").loop_version(
        "l", condition="i % 2 == 0"
    ),
    "initialized before": lambda builder: (
        builder.decompose_reduction("matmul", loop="j").fission("i").parallel("i_0").parallel("i_1")
    ),
    "unit loops": lambda builder: (
        builder.add_unit_loop("i").add_unit_loop("matmul").parallel("i_unit")
    ),
}
SHAPES = [(0, 3), (3, 0), (1, 1), (5, 7), (33, 17)]


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    builder = PRODUCTS[name](ScheduleBuilder(examples.MATMUL))
    kernel = gossamer.compile(builder.module, target="generic-cpu:threads=2")
    random = np.random.default_rng(3)
    for m, n in SHAPES:
        for k in (0, 5, 8, 19):
            a = random.integers(-3, 4, (m, n)).astype(np.float32)
            b = random.integers(-3, 4, (n, k)).astype(np.float32)
            c = np.full((m, k), 77, np.float32)
            kernel(a=a, b=b, c=c, m=m, n=n, k=k)
            np.testing.assert_array_equal(c, a @ b)


SPARSE = {
    "rows": lambda builder: builder.loop_partition("i", points=("m // 3",)).parallel("i_0"),
    "ragged points": lambda builder: builder.loop_partition("j", points=("i", "i + 2")),
    "empty matrices": lambda builder: builder.loop_version("i", condition="nnz == 0"),
    "short rows": lambda builder: builder.loop_version(
        "j", condition="T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i]) <= 2"
    ),
}


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("stage", [examples.SPMM, examples.SPMM_POSITION], ids=["loop", "position"])
def test_sparse_products(name, stage):
    builder = SPARSE[name](ScheduleBuilder(stage))
    kernel = gossamer.compile(builder.module, target="generic-cpu:threads=2")
    for m, n in SHAPES:
        a = scipy.sparse.random(m, n, 0.4, "csr", np.float32, random_state=7)
        a.data[:] = np.arange(a.nnz) % 5 - 2
        a.sort_indices()
        b = np.arange(n * 6, dtype=np.float32).reshape(n, 6) % 7 - 3
        c = np.full((m, 6), 77, np.float32)
        size = {"K": 6} if stage is examples.SPMM else {"width": 6}
        sizes = {"m": m, "n": n, "nnz": a.nnz} | size
        kernel(indptr=a.indptr, indices=a.indices, a=a.data, b=b, c=c, **sizes)
        np.testing.assert_array_equal(c, a @ b)


def test_points_of_any_size():
    module = parse_module("""
@T.prim_func
def count(y: T.handle, n: T.int64, p: T.int64, q: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (64,), "int64")
    for i in T.serial(n):
        with T.block("count"):
            vi = T.axis.spatial(n, i)
            Y[vi] = Y[vi] * 2 + vi + 1
""")
    kernel = gossamer.compile(
        ScheduleBuilder(module).loop_partition("i", points=("p", 3, "q")).module
    )
    extreme = (-(2**63), -(2**62), -1, 0, 1, 3, 5, 64, 2**62, 2**63 - 1)
    for n in (-(2**63), -3, 0, 1, 7, 64):
        wanted = np.arange(64) + 1
        wanted[max(n, 0) :] = 0
        for p in extreme:
            for q in extreme:
                y = np.zeros(64, np.int64)
                kernel(y=y, n=n, p=p, q=q)
                np.testing.assert_array_equal(y, wanted)


STENCIL = parse_module("""
@T.prim_func
def stencil(x: T.handle, t: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n + 2,), "float32")
    S = T.match_buffer(t, (n + 2,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        with T.block("twice"):
            vi = T.axis.spatial(n, i)
            S[vi + 2] = X[vi + 2] * 2.0
        with T.block("sum"):
            wi = T.axis.spatial(n, i)
            Y[wi] = S[wi] + S[wi + 1] + S[wi + 2]
""")


@pytest.mark.parametrize("n", [0, 1, 2, 33])
def test_a_stencil_after_what_it_reads(n):
    builder = ScheduleBuilder(STENCIL).fission("i").parallel("i_0").parallel("i_1")
    kernel = gossamer.compile(builder.module, target="generic-cpu:threads=2")
    x = np.arange(n + 2, dtype=np.float32)
    s, y = x * 2, np.zeros(n, np.float32)
    s[2:] = 77
    kernel(x=x, t=s, y=y, n=n)
    np.testing.assert_array_equal(y, 2 * (x[:-2] + x[1:-1] + x[2:]))


PADDED = parse_module("""
@T.prim_func
def padded(x: T.handle, y: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, n), "float32")
    Y = T.match_buffer(y, (m + 2, n + 3), "float32")
    for i in T.serial(m + 2):
        for j in T.serial(n + 3):
            with T.block("pad"):
                vi = T.axis.spatial(m + 2, i)
                vj = T.axis.spatial(n + 3, j)
                Y[vi, vj] = T.if_then_else(vi >= 1 and vi <= m and vj >= 2 and vj < n + 2, X[vi - 1, vj - 2], -1.0)
""")  # noqa: E501  (the script has no line breaks inside an expression)


@pytest.mark.parametrize("loop", ["i", "j"])
@pytest.mark.parametrize("shape", SHAPES)
def test_padding(loop, shape):
    builder = ScheduleBuilder(PADDED).decompose_padding("pad", loop=loop).parallel("i")
    kernel = gossamer.compile(builder.module, target="generic-cpu:threads=2")
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    y = np.full((shape[0] + 2, shape[1] + 3), 77, np.float32)
    kernel(x=x, y=y, m=shape[0], n=shape[1])
    np.testing.assert_array_equal(y, np.pad(x, ((1, 1), (2, 1)), constant_values=-1))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_rows_are_summed_in_the_dtype_of_the_accumulator(dtype):
    builder = ScheduleBuilder(examples.ROW_SUM).cache_write("row_sum", buffer="Y", scope="local")
    builder.reverse_compute_at("row_sum_Y_local", loop="i")
    builder.unsafe_set_dtype("Y_local", dtype=dtype).parallel("i")
    kernel = gossamer.compile(builder.module, target="generic-cpu:threads=2")
    indptr = np.array([0, 0, 3, 400])
    a = np.random.default_rng(0).random(400).astype(np.float32)
    y = np.zeros(3, np.float32)
    kernel(indptr=indptr, a=a, y=y, m=3, nnz=400)
    exact = np.array([0, a[:3].sum(dtype=np.float64), a[3:].sum(dtype=np.float64)])
    bits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}[dtype]
    bound = 400 * 2.0**-bits * np.abs(exact) + 2.0**-24 * np.abs(exact)
    assert (np.abs(y - exact) <= bound).all()
    if dtype == "float64":
        np.testing.assert_array_equal(y, exact.astype(np.float32))


def in_registers(dtype):
    """A sparse times dense product with accumulators of the given dtype."""
    builder = ScheduleBuilder(specialize(examples.SPMM, {"K": 64})).split("k", factors=(4, 16))
    builder.cache_write("csrmm", buffer="C", scope="local").unsafe_set_dtype("C_local", dtype=dtype)
    builder.reverse_compute_at("csrmm_C_local", loop="i").decompose_reduction("csrmm", loop="j")
    builder.split("k_c", factors=(4, 16)).unroll("k_0_init").unroll("k_0").unroll("k_c_0")
    return builder.vectorize("k_1_init").vectorize("k_1").vectorize("k_c_1").parallel("i").module


def test_products_are_added_up_in_wider_vectors():
    a = scipy.sparse.random(50, 200, 0.4, "csr", np.float32, random_state=1)
    b = np.random.default_rng(0).random((200, 64)).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    results = {}
    for dtype in ("float32", "float64"):
        kernel = gossamer.compile(in_registers(dtype))
        results[dtype] = np.full((50, 64), 77, np.float32)
        sizes = {"m": 50, "n": 200, "nnz": a.nnz}
        kernel(indptr=a.indptr, indices=a.indices, a=a.data, b=b, c=results[dtype], **sizes)
    # Sums of 200 products, each exact in float64, are off by less than half a unit of float32.
    np.testing.assert_allclose(results["float64"], exact, rtol=2.0**-24 + 200 * 2.0**-53)
    assert np.abs(results["float32"] - exact).max() > np.abs(results["float64"] - exact).max()
