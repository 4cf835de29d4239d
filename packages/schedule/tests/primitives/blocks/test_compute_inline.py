"""`compute_inline` and `reverse_compute_inline`."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY
from program_results import arrays_after
from refused import reason_of
from refused_programs import BEHIND, STAGED, STAGED_HALF, STAGED_SUM

from gossamer_ir.interchange.records import Step
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples
from gossamer_testkit.show import body_text

POINTWISE = """
Q = T.decl_buffer((64,), "float32")
for a in T.serial(64):
    with T.block("made"):
        va = T.axis.spatial(64, a)
        Q[va] = 2.0 * V[va]
for i in T.serial(64):
    with T.block("used"):
        vi = T.axis.spatial(64, i)
        W[vi] = Q[vi] + T.abs(Q[63 - vi])
"""
GUARDED = """
Q = T.decl_buffer((64,), "float32")
for a in T.serial(64):
    with T.block("made"):
        va = T.axis.spatial(64, a)
        T.where(T.int64(P[1]) <= va)
        Q[va] = V[va] + 1.0
for i in T.serial(64):
    with T.block("used"):
        vi = T.axis.spatial(64, i)
        W[vi] = T.Select(vi < T.int64(P[1]), 0.0, Q[vi])
"""
RAGGED = """
Q = T.decl_buffer((64,), "float32")
for a in T.serial(8):
    for b in T.serial(T.int64(P[a + 1]) - T.int64(P[a])):
        with T.block("made"):
            va, vb = T.axis.remap("SS", [a, b])
            Q[T.int64(P[va]) + vb] = V[T.int64(P[va]) + vb] * X[va, 0]
for i in T.serial(8):
    for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("used"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                Y[vi, 0] = 0.0
            Y[vi, 0] = Y[vi, 0] + Q[T.int64(P[vi]) + vj]
"""
EPILOGUE = """
Q = T.decl_buffer((8, 8), "float32")
for a in T.serial(8):
    for b_0 in T.serial(3):
        for b_1 in T.serial(3):
            with T.block("made"):
                va = T.axis.spatial(8, a)
                vb = T.axis.spatial(8, b_0 * 3 + b_1)
                T.where(vb < 8)
                Q[va, vb] = X[vb, va]
for i in T.serial(5):
    for j in T.serial(8):
        with T.block("used"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vj < vi + 2)
            Z[vj, vi] = T.max(Q[vi, vj], 0.0) + W[vj]
"""
CASES = {
    "each load": (
        POINTWISE,
        ("compute_inline", "made"),
        """
for i in T.serial(64):
    with T.block("used"):
        vi = T.axis.spatial(64, i)
        W[vi] = 2.0 * V[vi] + T.abs(2.0 * V[63 - vi])
""",
    ),
    "not where nothing was made": (
        GUARDED,
        ("compute_inline", "made"),
        """
for i in T.serial(64):
    with T.block("used"):
        vi = T.axis.spatial(64, i)
        W[vi] = T.Select(vi < T.int64(P[1]), 0.0, T.if_then_else(T.int64(P[1]) <= vi, V[vi] + 1.0, 0.0))
""",
    ),
    "elements of fibers": (
        RAGGED,
        ("compute_inline", "made"),
        """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("used"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                Y[vi, 0] = 0.0
            Y[vi, 0] = Y[vi, 0] + V[T.int64(P[vi]) + vj] * X[vi, 0]
""",
    ),
    "what is made of results, where it is": (
        EPILOGUE,
        ("reverse_compute_inline", "used"),
        """
for a in T.serial(8):
    for b_0 in T.serial(3):
        for b_1 in T.serial(3):
            with T.block("made"):
                va = T.axis.spatial(8, a)
                vb = T.axis.spatial(8, b_0 * 3 + b_1)
                T.where(vb < 8 and va < 5 and vb < va + 2)
                Z[vb, va] = T.max(X[vb, va], 0.0) + W[vb]
""",
    ),
}
FACTS = "T.assume(monotone(P))\nT.assume(in_range(P, 0, 65))"


def outcome(module):
    return arrays_after(module, p=np.array([0, 3, 5, 6, 30, 30, 41, 64, 64], np.int32), n=8)


@pytest.mark.parametrize("name", CASES)
def test_before_and_after(program, name):
    text, (op, block), expected = CASES[name]
    module = program(text, facts=FACTS)
    inlined = getattr(ScheduleBuilder(module), op)(block).module
    assert body_text(inlined) == expected.strip("\n")
    before, after = outcome(module), outcome(inlined)
    for array in before:
        np.testing.assert_array_equal(after[array], before[array])


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("op", ["cache_read", "reindex_cache_read"])
@pytest.mark.parametrize("buffer", ["A", "B"])
def test_a_cache_is_inlined_again(require_spmm, module, op, buffer):
    builder = ScheduleBuilder(module)
    getattr(builder, op)("csrmm", buffer=buffer, scope="local")
    builder.compute_inline(f"csrmm_{buffer}_local")
    assert builder.module == module
    require_spmm(builder.module, 3)


USED_BEFORE = STAGED.replace("for i in", "for t in T.serial(8):\n    V[t] = Q[t, 0]\nfor i in")
PREFETCHED = STAGED + "T.prefetch(Q[0, 0])\n"
REFUSED = [
    ("compute_inline.form", STAGED_SUM, {"block": "first"}),
    ("compute_inline.parameter", BEHIND, {"block": "first"}),
    ("compute_inline.writers", STAGED + COPY.replace("Y[", "Q["), {"block": "first"}),
    (
        "compute_inline.predicate",
        STAGED.replace("Q[vi, vj] =", "T.where(i + j < 9)\n            Q[vi, vj] ="),
        {"block": "first"},
    ),
    ("compute_inline.changed", STAGED.replace("Z[wh, wk] =", "X[wh, wk] ="), {"block": "first"}),
    ("compute_inline.other_access", PREFETCHED, {"block": "first"}),
    ("compute_inline.other_access", USED_BEFORE, {"block": "first"}),
    ("compute_inline.not_proved", STAGED_HALF, {"block": "first"}),
    (
        "compute_inline.not_proved",
        STAGED.replace("Q[vi, vj]", "Q[vi // 2, vj]"),
        {"block": "first"},
    ),
    ("compute_inline.form", COPY.replace("Y[vi, vj] = X[vi, vj]", "pass"), {"block": "copy"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("compute_inline", arguments)) == code
