"""Loops that count how often indices occur run in groups of iterations."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir import parse_module
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule.conversion_loops.unroll_counting_loops import unroll_counting_loops
from gossamer_testkit.show import body_text

HEAD = """\
@T.prim_func
def f(p: T.handle, x: T.handle, c: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m + 1,), "int32")
    X = T.match_buffer(x, (nnz,), "int32")
    C = T.match_buffer(c, (n,), "int32")
    T.assume(monotone(P))
    T.assume(in_range(P, 0, nnz + 1))
    T.assume(in_range(X, 0, n))
"""
COUNTED = """\
    for e in T.serial(nnz):
        i: T.int64 = T.int64(X[e])
        C[i] = C[i] + 1
"""


def scheduled(body):
    return unroll_counting_loops(verify(parse_module(HEAD + body)))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 11])
def test_each_element_is_counted_once(count):
    indices = np.random.default_rng(count).integers(0, 3, count).astype(np.int32)
    counts = np.zeros(3, np.int32)
    module = verify(scheduled(COUNTED))
    assert "T.unroll(4)" in body_text(module)
    arrays = {"p": np.array([0, count], np.int32), "x": indices, "c": counts}
    run(module, {**arrays, "m": 1, "n": 3, "nnz": count})
    assert counts.tolist() == np.bincount(indices, minlength=3).tolist()


@pytest.mark.parametrize(
    "body",
    [
        # The element does not depend on an array.
        "    for e in T.serial(n):\n        C[e] = C[e] + 1\n",
        # Stores only.
        "    for e in T.serial(nnz):\n        C[T.int64(X[e])] = 1\n",
        # Another element is read.
        "    for e in T.serial(1, nnz):\n        C[T.int64(X[e])] = C[T.int64(X[e - 1])] + 1\n",
        # The loop contains another one.
        COUNTED.replace("        C[i]", "        for k in T.serial(2):\n            C[i]"),
        # Two stores.
        COUNTED + "        C[0] = 1\n",
    ],
)
def test_other_loops_stay_as_they_are(body):
    assert body_text(scheduled(body)) == body_text(parse_module(HEAD + body))


def test_loops_below_branches_are_unrolled():
    body = "    if m > n:\n" + "".join(f"    {line}\n" for line in COUNTED.splitlines())
    assert "T.unroll(4)" in body_text(scheduled(body))
