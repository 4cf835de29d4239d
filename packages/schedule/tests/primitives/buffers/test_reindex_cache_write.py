"""`reindex_cache_write`: points that share an element, and programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY, SUM
from refused import reason_of
from refused_programs import ELEMENT, REPEATED, SCATTER, SHARED

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Block
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply

LET_MIN = """
for i in T.serial(8):
    with T.block("least"):
        vi = T.axis.spatial(8, i)
        t: T.float32 = X[vi, 0]
        V[vi] = T.min(V[vi], t)
"""
LOCAL = {"scope": "local"}
REFUSED = [
    ("reindex_cache_write.race", SHARED, {"block": "copy", "buffer": "Y", **LOCAL}),
    ("reindex_cache_write.initialized", REPEATED, {"block": "sum", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.initialized", LET_MIN, {"block": "least", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.not_proved", SCATTER, {"block": "scatter", "buffer": "V", **LOCAL}),
    (
        "reindex_cache_write.order",
        COPY,
        {"block": "copy", "buffer": "Y", "order": ("vi", "vj", "vk"), **LOCAL},
    ),
    ("reindex_cache_write.element", ELEMENT, {"block": "last", "buffer": "Y", **LOCAL}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("reindex_cache_write", arguments)) == code


SCATTERED_MAXIMA = """
@T.prim_func
def scatter(p: T.handle, x: T.handle, y: T.handle, n: T.int64, m: T.int64, k: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    X = T.match_buffer(x, (n, k), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(in_range(P, 0, m))
    for i in T.serial(n):
        for j in T.serial(k):
            with T.block("scatter"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[T.int64(P[vi])] = T.max(Y[T.int64(P[vi])], X[vi, vj])
"""


@pytest.mark.parametrize(("n", "k"), [(0, 3), (5, 0), (9, 4)])
def test_points_that_meet_in_one_element_are_combined(n, k):
    module = parse_module(SCATTERED_MAXIMA)
    builder = ScheduleBuilder(module).reindex_cache_write("scatter", buffer="Y", scope="local")
    random = np.random.default_rng(n)
    p = random.integers(0, 4, n).astype(np.int32)
    x = random.integers(-9, 9, (n, k)).astype(np.float32)
    y = random.integers(-9, 0, 4).astype(np.float32)
    expected = y.copy()
    np.maximum.at(expected, np.repeat(p, k), x.ravel())
    run(verify(builder.module), {"p": p, "x": x, "y": y, "n": n, "m": 4, "k": k})
    np.testing.assert_array_equal(y, expected)


def test_elements_that_a_loop_decides_on_are_not_cached(program):
    body = SUM.replace("        with T.init", "        T.where(i < 5)\n            with T.init")
    step = Step("reindex_cache_write", {"block": "sum", "buffer": "V", "scope": "local"})
    with pytest.raises(ScheduleError, match=r"\.predicate\]"):
        apply(program(body), step)


CHOSEN_SUMS = """
@T.prim_func
def sums(p: T.handle, x: T.handle, y: T.handle, n: T.int64, m: T.int64, k: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    X = T.match_buffer(x, (n, k), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(in_range(P, 0, n))
    T.assume(distinct(P))
    for i in T.serial(n):
        for j in T.serial(k):
            with T.block("sums"):
                vi, vj = T.axis.remap("SR", [i, j])
                T.where(T.int64(P[vi]) < m)
                with T.init():
                    Y[T.int64(P[vi])] = 0.0
                Y[T.int64(P[vi])] = Y[T.int64(P[vi])] + X[INDEX]
"""


@pytest.mark.parametrize(
    ("index", "is_dropped"), [("vi, vj", True), ("T.int64(P[vi]) + n - m, vj", False)]
)
def test_elements_that_are_not_copied_are_computed_if_their_loads_are_safe(index, is_dropped):
    module = parse_module(CHOSEN_SUMS.replace("INDEX", index))
    cached = ScheduleBuilder(module).reindex_cache_write("sums", buffer="Y", scope="local").module
    computing, copying = collect(Block, *cached.functions[0].body)
    assert (computing.predicate is None) == is_dropped
    assert copying.predicate is not None or "if" in print_module(cached)
    p, x = np.array([2, 0, 3, 1], np.int32), np.arange(12, dtype=np.float32).reshape(4, 3)
    for count in (0, 2, 4):
        y = np.full(count, np.nan, np.float32)
        run(cached, {"p": p, "x": x, "y": y, "n": 4, "m": count, "k": 3})
        rows = np.argsort(p) if is_dropped else np.arange(4) + 4 - count
        assert y.tolist() == x.sum(axis=1)[rows[:count]].tolist()
