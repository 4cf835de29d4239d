"""Which searches become linear walks, and that they find the positions that NumPy finds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate, For, Search
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import FLAT_PASSES, hoist_searches, lower_to_flat, merge_searches
from gossamer_lower.search.merge_searches import MAX_LINEAR_STEPS

HEADER = """
@T.prim_func
def f(y: T.handle, p: T.handle, q: T.handle, r: T.handle, s: T.handle, m: T.int64, n: T.int64,
      c: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m + 1,), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    R = T.match_buffer(r, (m + 1,), "int32")
    S = T.match_buffer(s, (c,), "int32")
    Y = T.match_buffer(y, (c,), "int64")
    T.assume(monotone(P))
    T.assume(in_range(P, 0, n + 1))
    T.assume(sorted_segments(Q, P, unique=UNIQUE))
    T.assume(monotone(R))
    T.assume(in_range(R, 0, c + 1))
    T.assume(in_range(S, 0, 1000))
    T.assume(sorted_segments(S, R, unique=False))
"""
IN_ROWS = """
for i in T.LOOP(m):
    for j in T.serial(T.int64(R[i + 1]) - T.int64(R[i])):
        Y[T.int64(R[i]) + j] = T.search("KIND", Q, begin=T.int64(P[i]), end=T.int64(P[i + 1]),
            value=VALUE)
"""
KEY = "T.int64(S[T.int64(R[i]) + j])"
WINDOW = "begin=T.int64(P[i]), end=T.int64(P[i + 1])"


def program(body, *, kind="exact", value=KEY, loop="serial", unique=True):
    for old, new in {"KIND": kind, "VALUE": value, "LOOP": loop}.items():
        body = body.replace(old, new)
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return parse_module(HEADER.replace("UNIQUE", str(unique)) + lines + "\n")


def at_searches(module):
    """The module before the pass."""
    for lower in FLAT_PASSES[: FLAT_PASSES.index(hoist_searches) + 1]:
        module = lower(module)
    return module


def searches(module):
    return [node for node in walk(module) if isinstance(node, Search)]


def rows(rng, lengths, *, high, unique):
    """The indptr and the sorted values of rows of these lengths."""
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    parts = [np.sort(rng.choice(high, size, replace=not unique)) for size in lengths]
    return indptr, np.concatenate([*parts, np.zeros(0)]).astype(np.int32)


def expected(kind, fiber, begin, value):
    left, right = (np.searchsorted(fiber, value, side) for side in ("left", "right"))
    if kind == "exact":
        return begin + left if left < right else -1
    return begin + (left if kind == "lower" else right)


LENGTHS = {
    "nothing": ([], []),
    "empty rows": ([0, 0, 3, 0], [0, 2, 0, 0]),
    "one in one": ([1], [1]),
    "long among few": ([2, 9, 1], [40, 40, 40]),
    "few among long": ([300, 500, 0, 200], [3, 7, 2, 0]),
    "far apart": ([MAX_LINEAR_STEPS + 1, MAX_LINEAR_STEPS, 4 * MAX_LINEAR_STEPS], [2, 2, 3]),
    "as many": ([60, 70], [60, 70]),
}


@pytest.mark.parametrize("loop", ["serial", "parallel"])
@pytest.mark.parametrize("kind", ["exact", "lower", "upper"])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_walk_finds_what_a_search_finds(lengths, kind, loop):
    rng = np.random.default_rng(7)
    for unique in (True, False) if kind != "exact" else (True,):
        p, q = rows(rng, LENGTHS[lengths][0], high=1000, unique=unique)
        r, s = rows(rng, LENGTHS[lengths][1], high=1000, unique=False)
        if q.size:
            s = np.where(rng.random(s.size) < 0.5, rng.choice(q, s.size), s).astype(np.int32)
        for begin, end in pairwise(r):
            s[begin:end].sort()
        module = program(IN_ROWS, kind=kind, loop=loop, unique=unique)
        assert searches(merge_searches(at_searches(module))) == []
        want = [
            expected(kind, q[p[i] : p[i + 1]], p[i], value)
            for i in range(len(p) - 1)
            for value in s[r[i] : r[i + 1]]
        ]
        sizes = {"m": len(p) - 1, "n": q.size, "c": s.size}
        y = np.full(s.size, -7, dtype=np.int64)
        run(lower_to_flat(module), {"y": y, "p": p, "q": q, "r": r, "s": s, **sizes})
        assert y.tolist() == want


MERGED = {
    "values of a sorted segment": IN_ROWS,
    "a loop's variable": IN_ROWS.replace("VALUE", "j"),
    "blocks of it": IN_ROWS.replace("VALUE", "j // 3"),
    "blocks of a size": IN_ROWS.replace("VALUE", "(j + i) // m"),
    "after a condition": """
for i in T.serial(m):
    for j in T.serial(c):
        if Y[j] > 0:
            Y[j] = T.search("exact", Q, begin=T.int64(P[i]), end=T.int64(P[i + 1]), value=j)
""",
    "an indptr": """
for j in T.serial(c):
    Y[j] = T.search("upper", P, begin=0, end=m + 1, value=j)
""",
}


@pytest.mark.parametrize("name", MERGED)
def test_searches_for_ascending_values_are_merged(name):
    before = at_searches(program(MERGED[name]))
    assert searches(before)
    after = verify(merge_searches(before))
    assert searches(after) == []


KEPT = {
    "values that descend": IN_ROWS.replace("VALUE", "c - j"),
    "values in any order": IN_ROWS.replace("VALUE", "T.int64(S[j])"),
    "values that wrap": IN_ROWS.replace("VALUE", "j * 4611686018427387904"),
    "values of the row before": IN_ROWS.replace("VALUE", "T.int64(S[T.int64(R[i + 1]) - 1 - j])"),
    "another window each time": IN_ROWS.replace("P[i]", "P[j]").replace("P[i + 1]", "P[j + 1]"),
    "a window of several segments": IN_ROWS.replace("T.int64(P[i])", "0"),
    "an array without a fact that it is sorted": IN_ROWS.replace("Q, begin", "S, begin"),
    "an array that the program writes": IN_ROWS + "P[0] = T.int32(0)\n",
    "values that the program writes": IN_ROWS + "S[0] = T.int32(0)\n",
    "in a parallel loop itself": """
for j in T.parallel(c):
    Y[j] = T.search("exact", Q, begin=T.int64(P[0]), end=T.int64(P[1]), value=j)
""",
    "by iterations of a parallel loop": """
for j in T.serial(c):
    for k in T.parallel(m):
        if Y[k] > 0:
            Y[k] = T.search("exact", Q, begin=T.int64(P[0]), end=T.int64(P[1]), value=j)
""",
    "outside of loops": """
Y[0] = T.search("exact", Q, begin=T.int64(P[0]), end=T.int64(P[1]), value=c)
""",
}


@pytest.mark.parametrize("name", KEPT)
def test_other_searches_stay(name):
    before = at_searches(program(KEPT[name]))
    assert merge_searches(before) == before


OTHERWISE = """
for i in T.serial(m):
    for j in T.serial(c):
        at: T.int64 = T.if_then_else(
            Y[j] > 0,
            T.search("exact", Q, begin=T.int64(P[i]), end=T.int64(P[i + 1]), value=j),
            OTHER)
        Y[j] = at
"""


@pytest.mark.parametrize("other", [0, -1, 42])
def test_a_search_under_a_condition_keeps_its_other_value(other):
    before = program(OTHERWISE.replace("OTHER", str(other)))
    assert len(searches(before)) == 1
    after = verify(merge_searches(before))
    assert searches(after) == []
    y = np.array([1, 0, 1, 1, 0, 1])
    q = np.array([0, 2, 5], np.int32)
    arrays = {"y": y, "p": np.array([0, 3], np.int32), "q": q, "r": np.zeros(2, np.int32)}
    run(after, arrays | {"s": np.zeros(y.size, np.int32), "m": 1, "n": q.size, "c": y.size})
    assert y.tolist() == [0, other, 1, -1, other, 2]


def test_a_cursor_belongs_to_one_iteration_of_a_parallel_loop():
    merged = merge_searches(at_searches(program(IN_ROWS, loop="parallel")))
    (outer,) = (node for node in walk(merged) if isinstance(node, For) and node.var == "i")
    assert any(isinstance(stmt, Allocate) for stmt in outer.body)
    (function,) = merged.functions
    assert not any(isinstance(stmt, Allocate) for stmt in function.body)
