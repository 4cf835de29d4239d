"""`cache_region`: which region is copied, and under which conditions; programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from before_and_after import require_change
from nest_programs import COPY, SUM
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import apply, cache_region
from gossamer_testkit.examples import GATHER_TILES
from gossamer_testkit.show import body_text

IN_TILES = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("scaled"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi * 8 + vj] = X[vi, vj] * W[vi * 8 + vj]
"""
AHEAD = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("moved"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vi + vj >= 1 and vi + vj < 9)
            Y[vi, vj] = W[vi + vj - 1]
"""
BEFORE_AND_AFTER = {
    "a region is a box of all dimensions": (
        COPY, {"block": "copy", "buffer": "X", "loop": "i"}, ("X_local", "copy_X_local", "X_1_c"),
        """
for i in T.serial(8):
    X_local = T.alloc_buffer((8, 8), "float32", scope="local")
    for X_1_c in T.serial(8):
        with T.block("copy_X_local"):
            vX_0_c, vX_1_c = T.axis.remap("SS", [i, X_1_c])
            X_local[vX_0_c, vX_1_c] = X[vX_0_c, vX_1_c]
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X_local[vi, vj]
""",
    ),
    "only one of several buffers is copied": (
        IN_TILES, {"block": "scaled", "buffer": "W", "loop": "i"},
        ("W_local", "scaled_W_local", "W_0_c"),
        """
for i in T.serial(8):
    W_local = T.alloc_buffer((64,), "float32", scope="local")
    for W_0_c in T.serial(8):
        with T.block("scaled_W_local"):
            vW_0_c = T.axis.spatial(64, i * 8 + W_0_c)
            W_local[vW_0_c] = W[vW_0_c]
    for j in T.serial(8):
        with T.block("scaled"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi * 8 + vj] = X[vi, vj] * W_local[vi * 8 + vj]
""",
    ),
    "a region that may begin before the buffer is cut": (
        AHEAD, {"block": "moved", "buffer": "W", "loop": "i"},
        ("W_local", "moved_W_local", "W_0_c"),
        """
for i in T.serial(8):
    W_local = T.alloc_buffer((64,), "float32", scope="local")
    for W_0_c in T.serial(8):
        with T.block("moved_W_local"):
            vW_0_c = T.axis.spatial(64, i - 1 + W_0_c)
            T.where(vW_0_c >= 0)
            W_local[vW_0_c] = W[vW_0_c]
    for j in T.serial(8):
        with T.block("moved"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vi + vj >= 1 and vi + vj < 9)
            Y[vi, vj] = W_local[vi + vj - 1]
""",
    ),
    "one element needs no loop": (
        COPY, {"block": "copy", "buffer": "X", "loop": "j"}, ("X_local", "copy_X_local"),
        """
for i in T.serial(8):
    for j in T.serial(8):
        X_local = T.alloc_buffer((8, 8), "float32", scope="local")
        with T.block("copy_X_local"):
            vX_0_c, vX_1_c = T.axis.remap("SS", [i, j])
            X_local[vX_0_c, vX_1_c] = X[vX_0_c, vX_1_c]
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X_local[vi, vj]
""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    step = Step("cache_region", arguments | {"scope": "local"})
    require_change(program(before), step, names=names, after=after)


# --- gathered elements


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 40])
def test_gathered_elements_of_tiles(n):
    """The last tile may be partial, and all but one element of a tile unused."""
    tiles = -(-n // 16)
    cached = verify(
        cache_region(GATHER_TILES, "gather", buffer="X", loop="t", scope="local").module
    )
    x = np.arange(1, n + 1, dtype=np.float32)
    places = np.random.default_rng(n).integers(0, 16, (tiles, 4)).astype(np.int32)
    places = np.minimum(places, n - 1 - 16 * np.arange(tiles)[:, None]).astype(np.int32)
    results = []
    for module in (GATHER_TILES, cached):
        y = np.full((tiles, 4), np.nan, np.float32)
        run(module, {"x": x, "p": places, "y": y, "m": n, "tiles": tiles})
        results.append(y)
    expected = x[16 * np.arange(tiles)[:, None] + places]
    for result in results:
        np.testing.assert_array_equal(result, expected)


CONDITIONAL = """
for t in T.serial(16):
    if t < 8:
        for i in T.serial(4):
            with T.block("gather"):
                vt, vi = T.axis.remap("SS", [t, i])
                V[vt * 4 + vi] = W[T.int64(P[vt]) + vi]
"""
FACT = "T.assume(in_range(P, 0, 61))"


def outcome(module, n=8):
    arrays = {name: np.arange(64, dtype=np.float32).reshape(8, 8) for name in "xyz"}
    arrays |= {name: np.arange(64, dtype=np.float32) for name in "vw"}
    arrays["p"] = np.array([5, 0, 60, 7, 33, 1, 2, 3, 4], np.int32)
    run(verify(module), arrays | {"n": n})
    return arrays


def test_bounds_that_may_not_exist_are_not_evaluated(program):
    """Element 9 of P would be read in iteration 9, which reads nothing."""
    module = program(CONDITIONAL, facts=FACT)
    cached = cache_region(module, "gather", buffer="W", loop="t", scope="local").module
    assert "for W_0_c in T.serial(64):" in body_text(cached)
    for name, array in outcome(module).items():
        np.testing.assert_array_equal(outcome(cached)[name], array)
    shorter = program(CONDITIONAL.replace("serial(16)", "serial(8)"), facts=FACT)
    cached = cache_region(shorter, "gather", buffer="W", loop="t", scope="local").module
    assert "vW_0_c = T.axis.spatial(64, T.int64(P[t]) + W_0_c)" in body_text(cached)


def test_a_loop_that_may_be_empty_copies_nothing_or_more(program):
    body = """
for t in T.serial(8):
    for i in T.serial(n):
        with T.block("b"):
            vt = T.axis.spatial(8, t)
            vi = T.axis.spatial(n, i)
            V[vt * 8 + vi] = W[vt * 8 + vi]
"""
    module = program(body)
    cached = cache_region(module, "b", buffer="W", loop="t", scope="local").module
    for n in (0, 1, 8):
        for name, array in outcome(module, n).items():
            np.testing.assert_array_equal(outcome(cached, n)[name], array)


def test_each_iteration_of_a_parallel_loop_has_a_copy(program):
    module = program(COPY.replace("for i in T.serial", "for i in T.parallel"))
    cached = cache_region(module, "copy", buffer="X", loop="i", scope="local").module
    assert body_text(cached).startswith("for i in T.parallel(8):\n    X_local = T.alloc_buffer(")
    for name, array in outcome(module).items():
        np.testing.assert_array_equal(outcome(cached)[name], array)


def test_names_that_are_taken_get_a_number(program):
    body = COPY.replace("for i in", 'X_local = T.alloc_buffer((4,), "float32")\nfor i in')
    result = cache_region(program(body), "copy", buffer="X", loop="i", scope="local")
    assert result.names == ("X_local_1", "copy_X_local_1", "X_1_c")


# --- refusals

WRITTEN_BESIDE = """
for i in T.serial(8):
    W[i * 8] = 1.0
    if i < n:
        for j in T.serial(8):
            with T.block("scaled"):
                vi, vj = T.axis.remap("SS", [i, j])
                V[vi * 8 + vj] = W[vi * 8 + vj]
"""
ALLOCATED_BESIDE = """
for i in T.serial(8):
    R = T.alloc_buffer((8,), "float32")
    R[i] = 1.0
    if i < n:
        for j in T.serial(8):
            with T.block("scaled"):
                vi, vj = T.axis.remap("SS", [i, j])
                V[vi * 8 + vj] = R[vi]
"""
GROWING = """
for k in T.serial(8):
    R = T.alloc_buffer((k + 1,), "float32")
    R[k] = 1.0
    for i in T.serial(8):
        with T.block("scaled"):
            vk, vi = T.axis.remap("SS", [k, i])
            V[vk * 8 + vi] = R[vk]
"""
NESTED = """
for i in T.serial(8):
    with T.block("outer"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("inner"):
                vj = T.axis.spatial(8, j)
                Y[vi, vj] = X[vi, vj]
"""
BOUND = """
for i in T.serial(8):
    with T.block("outer"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("inner"):
                vj = T.axis.spatial(T.int64(P[vi]), j)
                Y[vi, vj] = T.float32(P[vi])
"""
SPARSE = parse_module("""
@T.prim_func
def sums(a: T.handle, y: T.handle, p: T.handle, x: T.handle, m: T.int64, n: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, x), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    J_indptr = T.match_buffer(p, (m + 1,), "int32")
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            with T.block("sums"):
                vi = T.axis.spatial(m, i)
                vj = T.axis.reduce(T.int64(J_indptr[vi + 1]) - T.int64(J_indptr[vi]), j)
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[vi, vj]
""")
REFUSED = [
    ("cache_region.scope", SUM, {"block": "sum", "buffer": "X", "loop": "i", "scope": "l1"}),
    ("cache_region.no_buffer", SUM, {"block": "sum", "buffer": "Q", "loop": "i"}),
    ("cache_region.no_loop", SUM, {"block": "sum", "buffer": "X", "loop": "q"}),
    ("cache_region.not_enclosing", SUM + COPY.replace("i in", "k in").replace("[i,", "[k,"),
     {"block": "sum", "buffer": "X", "loop": "k"}),
    ("cache_region.not_enclosing", NESTED, {"block": "inner", "buffer": "X", "loop": "i"}),
    ("cache_region.kind", COPY.replace("for j in T.serial", "for j in T.vectorized"),
     {"block": "copy", "buffer": "X", "loop": "j"}),
    ("cache_region.loads", SUM, {"block": "sum", "buffer": "Y", "loop": "i"}),
    ("cache_region.written", SUM, {"block": "sum", "buffer": "V", "loop": "i"}),
    ("cache_region.written", WRITTEN_BESIDE, {"block": "scaled", "buffer": "W", "loop": "i"}),
    ("cache_region.inner", ALLOCATED_BESIDE, {"block": "scaled", "buffer": "R", "loop": "i"}),
    ("cache_region.inner", GROWING, {"block": "scaled", "buffer": "R", "loop": "i"}),
    ("cache_region.domain", BOUND, {"block": "outer", "buffer": "P", "loop": "i"}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    step = Step("cache_region", {"scope": "local"} | arguments)
    assert reason_of(apply, program(body), step) == code


def test_a_buffer_over_sparse_axes_is_refused():
    arguments = {"block": "sums", "buffer": "A", "loop": "i", "scope": "local"}
    assert reason_of(apply, SPARSE, Step("cache_region", arguments)) == "cache_region.sparse"
