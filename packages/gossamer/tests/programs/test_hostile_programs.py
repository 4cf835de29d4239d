"""Programs that would access memory outside their arrays if a proof were wrong: each is stopped."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer as gs
from gossamer_ir.errors import UserError

HEADER = """
@T.prim_func
def hostile(x: T.handle, p: T.handle, n: T.int64, k: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float64")
    P = T.match_buffer(p, (1,), "int64")
"""
FAR = 10**12

STOPPED = {
    "a condition on what is overwritten": (
        f"if P[0] < n:\n  if P[0] >= 0:\n    P[0] = {FAR}\n    X[P[0]] = 1.0",
        0,
    ),
    "a variable equal to what is overwritten": (
        f"at: T.int64 = P[0]\nif at >= 0:\n  if at < n:\n    P[0] = {FAR}\n    X[P[0]] = 1.0",
        0,
    ),
    "a bound of a loop that is overwritten": (
        f"if P[0] <= n:\n  for i in T.serial(P[0]):\n    P[0] = {FAR}\n"
        "    for j in T.serial(P[0]):\n      X[j] = 1.0",
        0,
    ),
    "a condition that wraps": ("if k >= 0:\n  if 2 * k < n:\n    X[k] = 1.0", 2**62 + 2**40),
    "a sum that wraps": ("if k >= 0:\n  if k + 2**62 < n:\n    X[k] = 1.0", 2**62 + 2**40),
    "a quotient that wraps": (
        "for i in T.serial(n):\n  X[i * 4611686018427387904 // 4611686018427387904] = 1.0",
        0,
    ),
    "an allocated size that wraps": (
        "Y = T.alloc_buffer((k * 8,), 'float64')\nfor i in T.serial(k):\n"
        "  Y[i * 8 + 7] = X[0]\nfor i in T.serial(k):\n  X[0] = Y[i]",
        2**61,
    ),
    "an allocated size that is negative": (
        "Y = T.alloc_buffer((k,), 'float64')\nfor i in T.serial(n):\n  if i < 0:\n    Y[i] = 1.0\n"
        "X[k] = 3.0\nfor i in T.serial(n):\n  if i < 0:\n    X[i] = Y[i]",
        -(10**9),
    ),
    "a sum that is not negative unless it wraps": (
        "if k >= 0:\n  X[k + 2**62] = 1.0",
        2**62 + 2**40,
    ),
    "a vector beyond the end": ("X[T.ramp(k, 1, 8)] = T.broadcast(1.0, 8)", 3),
    "a vector before the begin": ("X[T.ramp(k, 1, 8)] = T.broadcast(1.0, 8)", -1),
    "a vector that wraps": ("X[T.ramp(k, 1, 8)] = T.broadcast(1.0, 8)", 2**63 - 4),
    "a vector backwards": ("X[T.ramp(k, -1, 8)] = T.broadcast(1.0, 8)", 6),
    "lanes far apart": ("X[T.ramp(k, 2**62, 4)] = T.broadcast(1.0, 4)", 0),
    "lanes that a mask lets through": (
        "T.store(X, T.ramp(k, 1, 8), value=T.broadcast(1.0, 8),"
        " predicate=T.ramp(k, 1, 8) <= T.broadcast(n, 8))",
        5,
    ),
    "gathered elements": ("X[0] = T.lane_reduce('add', X[T.broadcast(P[0] + k, 4)])", 7),
    "an index converted from NaN": ("X[0] = X[0] / 0.0\nX[T.int64(X[0])] = 1.0", 0),
}


@pytest.mark.parametrize("name", STOPPED)
def test_an_access_out_of_bounds_is_stopped(name):
    body, k = STOPPED[name]
    lines = "".join(f"    {line}\n" for line in body.replace("2**62", str(2**62)).split("\n"))
    kernel = gs.compile(HEADER + lines)
    with pytest.raises(UserError) as caught:
        kernel(x=np.ones(10), p=np.full(1, 3), k=k)
    assert caught.value.code == "kernel.out_of_bounds"


FLAT = """
@T.prim_func
def rows(begin: T.int64, end: T.int64, x: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float64")
    for i in T.serial(begin, end):
        X[i] = 1.0

@T.prim_func(entry=True)
def entry(x: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float64")
    {}
"""
UNROLLED = """
@T.prim_func
def entry(x: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n,), "float64")
    for i in T.unroll({}):
        X[i] = 1.0
"""
CHANGING = (
    HEADER
    + """
    P[0] = 8
    Y = T.alloc_buffer((P[0],), "float64")
    P[0] = 1000000000000
    for i in T.serial(n):
        Y[i * 1000000000] = X[i]
    for i_1 in T.serial(n):
        X[i_1] = Y[i_1 * 1000000000]
"""
)
RENAMED = (
    HEADER
    + f"""
    Q = T.match_buffer(p, (1,), "int64")
    T.assume(in_range(Q, 0, n))
    P[0] = {FAR}
    X[Q[0]] = 1.0
"""
)
ALLOCATED = """
@T.prim_func
def hostile(x: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I,), "float64")
    Q = T.sp.alloc_buffer((I,), "int64")
    T.assume(in_range(Q, 0, n))
    with T.sp.iteration([I], "S", "far") as [i]:
        X[Q[i]] = X[Q[i]] + 1.0
"""
REFUSED = {
    "a fact about a buffer that is not passed": ("verify.fact.unchecked", ALLOCATED),
    "a fact about what is written under another name": ("verify.handle.alias", RENAMED),
    "a size that is read from what is written": (
        "lower.insert_bounds_checks.changing_size",
        CHANGING,
    ),
    "calls that claim another size": (
        "lower.bounds_check_flat.not_proved",
        FLAT.format("T.parallel_for('rows', 'i', n * 1000000, args=[x, n * 1000000])"),
    ),
    "a loop unrolled too often": ("lower.unroll_loops.size", UNROLLED.format(10**9)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_guarded_or_compiled_is_refused(name):
    code, program = REFUSED[name]
    with pytest.raises(UserError) as caught:
        gs.compile(program)
    assert caught.value.code == code


def test_a_flat_function_is_guarded():
    text = HEADER.replace('T.func_attr({"sparse_tir_level": 0})', 'T.stage("flat")')
    kernel = gs.compile(text + "    for i in T.serial(k):\n        X[i * i] = 2.0\n")
    x = np.ones(10)
    kernel(x=x, p=np.zeros(1, np.int64), k=4)
    assert x[[0, 1, 4, 9]].tolist() == [2, 2, 2, 2]
    with pytest.raises(UserError, match="'X' out of bounds"):
        kernel(x=x, p=np.zeros(1, np.int64), k=5)
