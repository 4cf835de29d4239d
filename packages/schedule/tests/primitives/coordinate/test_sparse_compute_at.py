"""`sparse_compute_at`: the four iterations of a sparse softmax, fused row by row."""

from __future__ import annotations

import numpy as np
import pytest
from refused import reason_of

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply

SOFTMAX = """
@T.prim_func
def softmax(p: T.handle, q: T.handle, a: T.handle, b: T.handle, m: T.int64, n: T.int64, z: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, z), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float64")
    B = T.sp.match_buffer(b, (I, J), "float64")
    MOST = T.sp.alloc_buffer((I,), "float64")
    TOTAL = T.sp.alloc_buffer((I,), "float64")
    with T.sp.iteration([I, J], "SR", "most") as [i, j]:
        with T.init():
            MOST[i] = T.float64("-inf")
        MOST[i] = T.max(MOST[i], A[i, j])
    with T.sp.iteration([I, J], "SS", "powers") as [i, j]:
        B[i, j] = T.exp(A[i, j] - MOST[i])
    with T.sp.iteration([I, J], "SR", "total") as [i, j]:
        with T.init():
            TOTAL[i] = 0.0
        TOTAL[i] = TOTAL[i] + B[i, j]
    with T.sp.iteration([I, J], "SS", "shares") as [i, j]:
        B[i, j] = B[i, j] / TOTAL[i]
"""
STEPS = (
    {"iteration": "total", "into": "shares", "var": "i_3"},
    {"iteration": "powers", "into": "shares_i_3", "var": "i_3"},
    {"iteration": "most", "into": "shares_i_3", "var": "i_3"},
)


def outcome(module, lengths):
    verify(module)
    p = np.cumsum([0, *lengths]).astype(np.int32)
    q = np.concatenate([np.arange(count) for count in lengths] or [[]]).astype(np.int32)
    a = np.random.default_rng(3).normal(size=p[-1])
    b = np.full(p[-1], 77.0)
    run(module, {"p": p, "q": q, "a": a, "b": b, "m": len(lengths), "n": 9, "z": p[-1]})
    return b


@pytest.mark.parametrize("lengths", [[], [0, 0], [0, 3, 0, 9, 1, 0]])
def test_each_step_keeps_the_result(lengths):
    builder = ScheduleBuilder(parse_module(SOFTMAX))
    expected = outcome(builder.module, lengths)
    for step in STEPS:
        builder.sparse_compute_at(**step)
        np.testing.assert_array_equal(outcome(builder.module, lengths), expected)
    assert builder.names == ("shares_i_3",)
    totals = np.add.reduceat(expected, np.cumsum([0, *[n for n in lengths if n]])[:-1])
    np.testing.assert_allclose(totals, 1.0, rtol=0, atol=16 * np.finfo(np.float64).eps)


def test_rows_that_are_stored_twice_are_not_run_together():
    stored = SOFTMAX.replace(
        "I = T.sp.dense_fixed(m)",
        "O = T.sp.dense_fixed(1)\n"
        + ("    I = T.sp.compressed_fixed(O, (m, m), q, padded=False, unique=False)"),
    )
    text = stored.replace("(I, J)", "(O, I, J)").replace("(I,)", "(O, I)")
    text = text.replace("[I, J]", "[O, I, J]").replace('"SR"', '"SSR"').replace('"SS"', '"SSS"')
    text = text.replace("[i, j]", "[o, i, j]").replace("[i]", "[o, i]")
    builder = ScheduleBuilder(parse_module(text))
    with pytest.raises(ScheduleError, match=r"sparse_compute_at\.axes"):
        builder.sparse_compute_at("total", into="shares", var="i_3")


SHARES = """
@T.prim_func
def shares(p: T.handle, q: T.handle, a: T.handle, y: T.handle, m: T.int64, n: T.int64, z: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, z), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    S = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I, J], "SR", "sum") as [i, j]:
        with T.init():
            S[i] = 0.0
        S[i] = S[i] + A[i, j]
    with T.sp.iteration([I, J], "SS", "share") as [k, l]:
        A[k, l] = A[k, l] / S[k]
"""
BETWEEN = (
    '    with T.sp.iteration([I, J], "SS",',
    """    with T.sp.iteration([I], "S", "between") as [h]:
        S[h] = S[h] + Y[h]
    with T.sp.iteration([I, J], "SS",""",
)
INTO = {"iteration": "sum", "into": "share", "var": "k"}
REFUSED = [
    ("sparse_compute_at.variable", parse_module(SHARES), INTO | {"var": "i"}),
    ("sparse_compute_at.axes", parse_module(SHARES), INTO | {"var": "l"}),
    (
        "sparse_compute_at.scope",
        parse_module(SHARES),
        {"iteration": "share", "into": "sum", "var": "i"},
    ),
    ("sparse_compute_at.other_access", parse_module(SHARES.replace(*BETWEEN)), INTO),
    (
        "sparse_compute_at.init",
        parse_module(
            SHARES.replace("S[i] = 0.0", "S[0] = 0.0").replace("S[i] = S[i] +", "S[0] = S[0] +")
        ),
        INTO,
    ),
    ("sparse_compute_at.dependence", parse_module(SHARES.replace("/ S[k]", "/ S[0]")), INTO),
]


@pytest.mark.parametrize(
    ("code", "module", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED]
)
def test_refusals(code, module, arguments):
    assert reason_of(apply, module, Step("sparse_compute_at", arguments)) == code
