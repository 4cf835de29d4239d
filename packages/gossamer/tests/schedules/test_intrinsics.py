"""Micro-kernels of the machine in programs, interpreted after each step and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from script_runs import call
from stepwise_schedules import INTRINSICS, integers, require_schedule, step

from gossamer.compilation.build_kernels import KERNELS
from gossamer_ir.script import parse_module
from gossamer_testkit.examples import MATMUL, SPMM

GATHERED_ROWS = (
    step("split", "k", factors=(None, 16)),
    step("reorder", "k_0", "j", "k_1"),
    step("cache_write", "csrmm", buffer="C", scope="local"),
    step("reverse_compute_at", "csrmm_C_local", loop="k_0"),
    step("sparse_tensorize", "j", intrinsic="outer_product_float32_1x16"),
    step("parallel", "i"),
)


def spmm_case(rows, columns, features):
    random = np.random.default_rng(rows)
    dense = integers(random, rows, columns) * (random.random((rows, columns)) < 0.4)
    dense[:1] = dense[rows - 1 :] = 0
    a, b = sparse.csr_matrix(dense.astype(np.float32)), integers(random, columns, features)
    arguments = {
        "indptr": a.indptr, "indices": a.indices, "a": a.data, "b": b,
        "c": np.full((rows, features), 77, np.float32), "m": rows, "n": columns, "nnz": a.nnz,
        "K": features,
    }  # fmt: skip
    return arguments, {"c": a @ b}


def test_rows_that_are_gathered_are_an_operand_of_an_outer_product():
    cases = [spmm_case(*sizes) for sizes in [(0, 3, 16), (7, 5, 0), (9, 8, 16), (6, 4, 37)]]
    require_schedule(SPMM, cases, loop=GATHERED_ROWS)


TRANSPOSED = """
@T.prim_func
def times_transposed(a: T.handle, b: T.handle, c: T.handle, m: T.int64, n: T.int64, k: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (m, k), "float64")
    B = T.match_buffer(b, (n, k), "float64")
    C = T.match_buffer(c, (m, n), "float64")
    for i in T.serial(m):
        for j in T.serial(n):
            for l in T.serial(k):
                with T.block("dots"):
                    vi, vj, vl = T.axis.remap("SSR", [i, j, l])
                    with T.init():
                        C[vi, vj] = 0.0
                    C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vj, vl]
"""


def dense_case(m, n, k, dtype, *, is_transposed):
    random = np.random.default_rng(m)
    a, b = (integers(random, *size).astype(dtype) for size in ((m, k), (n, k)))
    arguments = {"a": a, "b": b if is_transposed else b.T.copy(), "c": np.full((m, n), 77, dtype)}
    sizes = (m, n, k) if is_transposed else (m, k, n)
    return arguments | dict(zip("mnk", sizes, strict=True)), {"c": a @ b.T}


SIZES = [(0, 3, 16), (3, 4, 0), (3, 2, 16), (2, 5, 37), (13, 17, 9)]


def test_sums_of_a_product_are_dot_products():
    cases = [dense_case(*sizes, np.float64, is_transposed=True) for sizes in SIZES]
    steps = (step("tensorize", "l", intrinsic="dot_product_float64"), step("parallel", "i"))
    require_schedule(parse_module(TRANSPOSED), cases, loop=steps)


def test_tiles_of_a_product_are_outer_products():
    steps = (
        step("split", "i", factors=(None, 6)),
        step("split", "l", factors=(None, 16)),
        step("reorder", "i_0", "l_0", "i_1", "l_1", "j"),
        step("tensorize", "i_1", intrinsic="outer_product_float32_6x16"),
        step("parallel", "i_0"),
    )
    cases = [dense_case(*sizes, np.float32, is_transposed=False) for sizes in SIZES]
    require_schedule(MATMUL, cases, loop=steps)


@pytest.mark.parametrize("intrinsic", INTRINSICS, ids=lambda intrinsic: intrinsic.name)
def test_what_is_emitted_is_compiled(intrinsic):
    """Natively, too, the semantics and the implementation compute the same."""
    texts = (intrinsic.semantics, intrinsic.implementation)
    kernels = [KERNELS.build_module(parse_module(text)).kernel for text in texts]
    (function,) = parse_module(texts[0]).functions
    dtype = function.buffers[0].dtype
    for length in (0, 5, 67):
        random, results = np.random.default_rng(length), []
        shapes = [
            tuple(length if getattr(size, "name", "") == "n" else int(size.text) for size in shape)
            for shape in (buffer.shape for buffer in function.buffers)
        ]
        arrays = [integers(random, *shape).astype(dtype) for shape in shapes]
        for kernel in kernels:
            arguments = dict(zip("abc", (array.copy() for array in arrays), strict=True))
            call(kernel, arguments | {"n": length})
            results.append(arguments["c"])
        np.testing.assert_array_equal(*results)
