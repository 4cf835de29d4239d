"""Which indices differ in each iteration of a loop, and which facts prove it."""

from __future__ import annotations

import pytest

from gossamer_ir.analysis.invariants import invariant_facts, mutable_buffers
from gossamer_ir.core.build import index
from gossamer_ir.dependence.injectivity import is_injective
from gossamer_ir.nodes import For, Monotone, PaddedSlots, SortedSegments
from gossamer_ir.script import parse_expr, parse_module

DTYPES = dict.fromkeys(("i", "j", "m", "o"), "int64")
DTYPES |= {"P": "int32", "Q": "int32", "W": "int64"}
UNIQUE = SortedSegments("Q", "P", unique=True)
ROWS = SortedSegments("Q", None, unique=True)
FIBER = "T.int64(P[o + 1]) - T.int64(P[o])"

PROVED = [
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i])", "0", FIBER),
    (UNIQUE, "T.int64(Q[i + T.int64(P[o])])", "0", FIBER),
    (UNIQUE, "T.int64(Q[T.int64(P[0]) + i])", "0", "T.int64(P[1]) - T.int64(P[0])"),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i])", "0", f"T.if_then_else(o < m, {FIBER}, 0)"),
    (UNIQUE, "T.int64(Q[o, i])", "0", FIBER),
    (UNIQUE, "T.int64(Q[j, o, i])", "0", "T.int64(P[j, o + 1]) - T.int64(P[j, o])"),
    (ROWS, "T.int64(Q[o, i])", "0", "m"),
    (ROWS, "T.int64(Q[o, i + 3])", "2", "m"),
]
NOT_PROVED = [
    (SortedSegments("Q", "P", unique=False), "T.int64(Q[T.int64(P[o]) + i])", "0", FIBER),
    (SortedSegments("W", "P", unique=True), "T.int64(Q[T.int64(P[o]) + i])", "0", FIBER),
    (SortedSegments("Q", "W", unique=True), "T.int64(Q[T.int64(P[o]) + i])", "0", FIBER),
    (Monotone("Q"), "T.int64(Q[T.int64(P[o]) + i])", "0", FIBER),
    (UNIQUE, "T.int64(Q[i])", "0", "m"),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i])", "0", "m"),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i])", "1", FIBER),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i])", "0", f"{FIBER} + 1"),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i])", "0", "T.int64(P[o + 2]) - T.int64(P[o])"),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i + 1])", "0", FIBER),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i // 2])", "0", FIBER),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + j])", "0", FIBER),
    (UNIQUE, "T.int64(Q[T.int64(P[i]) + i])", "0", FIBER),
    (UNIQUE, "T.int64(T.int16(Q[T.int64(P[o]) + i]))", "0", FIBER),
    (UNIQUE, "T.int64(Q[T.int64(P[o]) + i]) // 2", "0", FIBER),
    (UNIQUE, "T.int64(Q[o, i])", "0", "m"),
    (UNIQUE, "T.int64(Q[o, i])", "1", FIBER),
    (UNIQUE, "T.int64(Q[o, i + 1])", "0", FIBER),
    (UNIQUE, "T.int64(Q[o, j])", "0", FIBER),
    (UNIQUE, "T.int64(Q[m, i])", "0", FIBER),
    (UNIQUE, "T.int64(Q[o, i])", "0", f"{FIBER} + 1"),
    (UNIQUE, "T.int64(Q[o, i])", "0", "T.int64(P[o + 2]) - T.int64(P[o])"),
    (UNIQUE, "T.int64(Q[o, i])", "0", "T.int64(W[o + 1]) - T.int64(W[o])"),
    (ROWS, "T.int64(Q[i, o])", "0", "m"),
    (ROWS, "T.int64(Q[i, i])", "0", "m"),
    (ROWS, "T.int64(Q[o, i * 2])", "0", "m"),
    (ROWS, "T.int64(Q[o, o])", "0", "m"),
]


def proves(facts, expr, start, extent):
    loop = For("i", parse_expr(start, DTYPES), parse_expr(extent, DTYPES), ())
    return is_injective(parse_expr(expr, DTYPES), loop, facts)


@pytest.mark.parametrize(("fact", "expr", "start", "extent"), PROVED)
def test_proved(fact, expr, start, extent):
    assert proves((fact,), expr, start, extent)


@pytest.mark.parametrize(("fact", "expr", "start", "extent"), NOT_PROVED)
def test_not_proved(fact, expr, start, extent):
    assert not proves((fact,), expr, start, extent)


@pytest.mark.parametrize("case", PROVED)
def test_unused_slots_hold_one_value_many_times(case):
    fact, *rest = case
    assert not proves((fact, PaddedSlots("Q", index(9))), *rest)


COPY = """
@T.prim_func
def copy(p: T.handle, q: T.handle, x: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    X = T.match_buffer(x, (n,), "int32")
    Y = T.match_buffer(HANDLE, (n,), "int32")
    T.assume(monotone(P))
    T.assume(sorted_segments(Q, P, unique=True))
    for i in T.serial(n):
        Y[i] = X[i]
"""


@pytest.mark.parametrize(("handle", "left"), [("x", 2), ("q", 1), ("p", 0)])
def test_facts_last_where_nothing_they_are_about_is_written(handle, left):
    (function,) = parse_module(COPY.replace("HANDLE", handle)).functions
    assert {"Y", handle.upper()} <= mutable_buffers(function)
    assert len(invariant_facts(function)) == left
