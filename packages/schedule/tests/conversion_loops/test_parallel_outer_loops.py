"""Outermost loops of programs of the loop stage run in parallel where this is proved valid."""

from __future__ import annotations

import pytest

from gossamer_ir import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule.conversion_loops.parallel_outer_loops import parallel_outer_loops
from gossamer_testkit.show import body_text

HEAD = """\
@T.prim_func
def f(p: T.handle, x: T.handle, y: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m + 1,), "int32")
    X = T.match_buffer(x, (nnz,), "int32")
    Y = T.match_buffer(y, (m,), "int32")
    T.assume(in_range(P, 0, nnz + 1))
"""
MONOTONE = "    T.assume(monotone(P))\n"
FIBERS = """\
    for i in T.serial(m):
        for e in T.serial(T.int64(P[i]), T.int64(P[i + 1])):
            Y[i] = Y[i] + X[e]
"""


def scheduled(body, facts=MONOTONE):
    """The first line of the body of a program that was scheduled."""
    report = parallel_outer_loops(verify(parse_module(HEAD + facts + body)))
    return body_text(verify(report)).splitlines()[0]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (FIBERS, "for i in T.parallel(m, weight=T.int64(P[i]) + i * 4, grain=8192):"),
        (
            FIBERS.replace("X[e]", "X[e] + X[k]").replace(
                "            Y", "            for k in T.serial(2):\n                Y"
            ),
            "for i in T.parallel(m, weight=T.int64(P[i]) * 2 + i * 4, grain=8192):",
        ),
        ("    for i in T.serial(m):\n        Y[i] = 1\n", "for i in T.parallel(m, grain=8192):"),
        (
            "    for i in T.serial(m):\n        for k in T.serial(16):\n            Y[i] = Y[i] + 1\n",
            "for i in T.parallel(m, grain=512):",
        ),
    ],
)
def test_an_iteration_weighs_as_much_as_its_inner_loops(body, expected):
    assert scheduled(body) == expected


def test_a_weight_that_may_decrease_is_left_out():
    assert scheduled(FIBERS, facts="") == "for i in T.parallel(m, grain=8192):"


@pytest.mark.parametrize(
    "body",
    [
        "    for i in T.serial(m):\n        Y[0] = Y[0] + 1\n",
        "    for e in T.serial(nnz):\n        Y[T.int64(X[e])] = 1\n",
        "    for i in T.serial(1, m):\n        Y[i] = Y[i - 1]\n",
    ],
)
def test_loops_that_are_not_proved_stay_serial(body):
    assert scheduled(body).partition("(")[0].endswith("T.serial")


def test_loops_in_branches_are_outermost_loops():
    body = "    if m > n:\n        for i in T.serial(m):\n            Y[i] = 1\n"
    report = parallel_outer_loops(verify(parse_module(HEAD + MONOTONE + body)))
    assert "for i in T.parallel(m, grain=8192):" in body_text(report)
