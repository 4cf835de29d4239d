"""The script before and after each primitive; both compute the same."""
# ruff: noqa: E501  (scripts have no line breaks inside an expression)

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import BACKWARDS, COPY, SUM

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule import apply
from gossamer_testkit.show import body_text

RAGGED = """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
"""
BARE = """
for i in T.serial(7):
    W[i] = V[i]
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
"""
TOTAL = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("total"):
            vi, vj = T.axis.remap("RR", [i, j])
            V[0] = V[0] + X[vi, vj]
"""
NOINIT = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            V[vi] = V[vi] + X[vi, vj]
"""
COND = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vj < 5)
            Y[vi, vj] = X[vi, vj]
"""
TWO = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
for h in T.serial(8):
    for k in T.serial(8):
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [h, k])
            Z[wh, wk] = Y[wh, wk] * W[wk]
"""
SPLIT2 = """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("first"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
for h in T.serial(8):
    for k in T.serial(8):
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [h, k])
            Z[wh, wk] = Y[wh, wk] * W[wk]
"""
CASES = {
    "exact factors need no predicate": (
        COPY, "split", {"loop": "j", "factors": (None, 4)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial(2):
        for j_1 in T.serial(4):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 4 + j_1)
                Y[vi, vj] = X[vi, vj]
""",
    ),
    "all factors given": (
        COPY, "split", {"loop": "j", "factors": (3, 3)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
""",
    ),
    "extents that load are guarded": (
        RAGGED, "split", {"loop": "i", "factors": (None, 3)}, ("i_0", "i_1"),
        """
for i_0 in T.serial(3):
    for i_1 in T.serial(3):
        for j in T.serial(T.if_then_else(i_0 * 3 + i_1 < 8, T.int64(P[i_0 * 3 + i_1 + 1]) - T.int64(P[i_0 * 3 + i_1]), 0)):
            with T.block("scale"):
                vi = T.axis.spatial(8, i_0 * 3 + i_1)
                vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j)
                T.where(vi < 8)
                V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
""",
    ),
    "a ragged loop is bounded by its domain": (
        RAGGED, "split", {"loop": "j", "factors": (None, 4)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial((T.int64(P[i + 1]) - T.int64(P[i]) + 3) // 4):
        for j_1 in T.serial(4):
            with T.block("scale"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j_0 * 4 + j_1)
                T.where(vj < T.int64(P[vi + 1]) - T.int64(P[vi]))
                V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
""",
    ),
    "statements outside of blocks": (
        BARE, "split", {"loop": "i", "factors": (None, 2)}, ("i_0", "i_1"),
        """
for i_0 in T.serial(4):
    for i_1 in T.serial(2):
        if i_0 * 2 + i_1 < 7:
            W[i_0 * 2 + i_1] = V[i_0 * 2 + i_1]
            for j in T.serial(8):
                with T.block("copy"):
                    vi = T.axis.spatial(7, i_0 * 2 + i_1)
                    vj = T.axis.spatial(8, j)
                    T.where(vi < 7)
                    Y[vi, vj] = X[vi, vj]
""",
    ),
    "reordered reductions are marked": (
        TOTAL, "reorder", {"loops": ("j", "i")}, ("j", "i"),
        """
for j in T.serial(8):
    for i in T.serial(8):
        with T.block("total"):
            vi, vj = T.axis.remap("RR", [i, j])
            T.block_attr({"reassociates": True})
            V[0] = V[0] + X[vi, vj]
""",
    ),
    "a copy of a ragged output": (
        RAGGED, "cache_write", {"block": "scale", "buffer": "V", "scope": "local"}, ("V_local", "scale_V_local", "i_c", "j_c"),
        """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            V_local[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
for i_c in T.serial(8):
    for j_c in T.serial(T.int64(P[i_c + 1]) - T.int64(P[i_c])):
        with T.block("scale_V_local"):
            vi_c, vj_c = T.axis.remap("SS", [i_c, j_c])
            V[T.int64(P[vi_c]) + vj_c] = V_local[T.int64(P[vi_c]) + vj_c]
""",
    ),
    "a reduction without init loads the old value": (
        NOINIT, "cache_write", {"block": "sum", "buffer": "V", "scope": "local"}, ("V_local", "sum_V_local", "i_c"),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V_local[vi] = V[vi]
            V_local[vi] = V_local[vi] + X[vi, vj]
for i_c in T.serial(8):
    with T.block("sum_V_local"):
        vi_c = T.axis.spatial(8, i_c)
        V[vi_c] = V_local[vi_c]
""",
    ),
    "conditions of the element are kept": (
        COND, "cache_write", {"block": "copy", "buffer": "Y", "scope": "shared"}, ("Y_shared", "copy_Y_shared", "i_c", "j_c"),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vj < 5)
            Y_shared[vi, vj] = X[vi, vj]
for i_c in T.serial(8):
    for j_c in T.serial(8):
        with T.block("copy_Y_shared"):
            vi_c, vj_c = T.axis.remap("SS", [i_c, j_c])
            T.where(vj_c < 5)
            Y[vi_c, vj_c] = Y_shared[vi_c, vj_c]
""",
    ),
    "a consumer moves into the outer loop": (
        TWO, "reverse_compute_at", {"block": "second", "loop": "i"}, ("k",),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
    for k in T.serial(8):
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [i, k])
            Z[wh, wk] = Y[wh, wk] * W[wk]
""",
    ),
    "a consumer moves into a tile": (
        SPLIT2, "reverse_compute_at", {"block": "second", "loop": "j_0"}, ("k",),
        """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("first"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
        for k in T.serial(3):
            with T.block("second"):
                wh = T.axis.spatial(8, i)
                wk = T.axis.spatial(8, j_0 * 3 + k)
                T.where(wk < 8)
                Z[wh, wk] = Y[wh, wk] * W[wk]
""",
    ),
    "a consumer moves to single elements": (
        TWO, "reverse_compute_at", {"block": "second", "loop": "j"}, (),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [i, j])
            Z[wh, wk] = Y[wh, wk] * W[wk]
""",
    ),
    "init outside of all loops": (
        SUM, "decompose_reduction", {"block": "sum", "loop": "i"}, ("sum_init", "i_init"),
        """
for i_init in T.serial(8):
    with T.block("sum_init"):
        vi_init = T.axis.spatial(8, i_init)
        V[vi_init] = 0.0
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            V[vi] = V[vi] + X[vi, vj]
""",
    ),
    "init of elements in which points of the reduction meet": (
        BACKWARDS, "decompose_reduction", {"block": "sum", "loop": "i"}, ("sum_init", "i_init", "j_init"),
        """
for i_init in T.serial(8):
    for j_init in T.serial(i_init + 1):
        with T.block("sum_init"):
            vi_init, vj_init = T.axis.remap("SS", [i_init, j_init])
            V[vj_init] = 0.0
for i in T.serial(8):
    for j in T.serial(i + 1):
        with T.block("sum"):
            vi, vj = T.axis.remap("RS", [i, j])
            V[vj] = V[vj] + X[vi, vj]
""",
    ),
    "lanes of a reduction": (
        SUM, "vectorize", {"loop": "j"}, ("j",),
        """
for i in T.serial(8):
    for j in T.vectorized(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.block_attr({"reassociates": True})
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
""",
    ),
    "a reduction in parts": (
        SUM, "rfactor", {"loop": "j", "axis": 1}, ("V_rf", "sum_rf", "sum", "i_c", "j_c"),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum_rf"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({"reassociates": True})
            with T.init():
                V_rf[vi, vj] = 0.0
            V_rf[vi, vj] = V_rf[vi, vj] + X[vi, vj]
for i_c in T.serial(8):
    for j_c in T.serial(8):
        with T.block("sum"):
            vi_c, vj_c = T.axis.remap("SR", [i_c, j_c])
            T.block_attr({"reassociates": True})
            with T.init():
                V[vi_c] = 0.0
            V[vi_c] = V[vi_c] + V_rf[vi_c, vj_c]
""",
    ),
    "a block around a reduction": (
        SUM, "blockize", {"loop": "j"}, ("sum_o", "vi_1"),
        """
for i in T.serial(8):
    with T.block("sum_o"):
        vi_1 = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("sum"):
                vi = T.axis.spatial(8, vi_1)
                vj = T.axis.reduce(8, j)
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, vj]
""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_before_and_after(program, name):
    before, op, arguments, names, after = CASES[name]
    result = apply(program(before), Step(op, arguments))
    assert body_text(result.module) == after.strip("\n")
    assert result.names == names
    assert result.step.op == op


def outcome(module) -> dict[str, np.ndarray]:
    """All arrays after a run on small integers."""
    random = np.random.default_rng(3)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    offsets = {"p": np.array([0, 0, 5, 6, 30, 30, 41, 64, 64], np.int32)}
    run(module, arrays | offsets | {"n": 8})
    return arrays


@pytest.mark.parametrize("name", CASES)
def test_both_compute_the_same(program, name):
    before, op, arguments, _, _ = CASES[name]
    module = verify(program(before))
    result = verify(apply(module, Step(op, arguments)).module)
    expected, found = outcome(module), outcome(result)
    for array in expected:
        np.testing.assert_array_equal(found[array], expected[array])
