"""Predicates with loads are not evaluated outside the bounds that a primitive adds."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder

HEADER = """
@T.prim_func
def program(y: T.handle, a: T.handle, p: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (m,), "float32")
    A = T.match_buffer(a, (m, 5), "float32")
    P = T.match_buffer(p, (m, 5), "int32")
    for i in T.serial(m):
        for j in T.serial(5):
            with T.block("row"):
"""
PADDED = """
                vi, vj = T.axis.remap("SR", [i, j])
                T.where(T.int64(P[vi, vj]) != n)
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[vi, vj]
"""
SCATTER = """
                vi, vj = T.axis.remap("RR", [i, j])
                with T.init():
                    Y[T.int64(P[vi, vj])] = 0.0
                Y[T.int64(P[vi, vj])] = Y[T.int64(P[vi, vj])] + A[vi, vj]
"""
STEPS = {
    "the padded loop": [("j", (2, 8))],
    "the rows": [("i", (None, 4))],
    "both": [("j", (None, 4)), ("i", (None, 2)), ("j_0", (None, 4))],
}


@pytest.mark.parametrize("name", STEPS)
def test_slots_beyond_the_width_are_not_read_when_split(name):
    builder = ScheduleBuilder(verify(parse_module(HEADER + PADDED)))
    for loop, factors in STEPS[name]:
        builder.split(loop, factors=factors)
    p = np.array([[0, 1, 2, 3, 7], [7] * 5, [2, 7, 7, 7, 7]], np.int32)
    a, y = np.arange(15, dtype=np.float32).reshape(3, 5), np.full(3, np.nan, np.float32)
    run(builder.module, {"y": y, "a": a, "p": p, "m": 3, "n": 7})
    np.testing.assert_array_equal(y, [6, 0, 10])


def test_an_init_of_elements_that_a_reduction_selects_stands_before_it():
    builder = ScheduleBuilder(verify(parse_module(HEADER + SCATTER)))
    builder.decompose_reduction("row", loop="i")
    p = np.array([[0, 1, 1, 0, 3], [3] * 5, [1, 0, 3, 3, 3], [1] * 5], np.int32)
    a, y = np.arange(20, dtype=np.float32).reshape(4, 5), np.full(4, 77, np.float32)
    expected = np.array([0, 0, 77, 0], np.float32)
    np.add.at(expected, p, a)
    run(verify(builder.module), {"y": y, "a": a, "p": p, "m": 4, "n": 4})
    np.testing.assert_array_equal(y, expected)


RAGGED = """
@T.prim_func
def program(y: T.handle, p: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (m + 1,), "int32")
    for i in T.serial(m):
        for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
            with T.block("count"):
                vi = T.axis.reduce(m, i)
                vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j)
                with T.init():
                    Y[vj] = 0.0
                Y[vj] = Y[vj] + 1.0
"""


def test_an_init_stays_in_a_split_domain_that_depends_on_a_reduction():
    builder = ScheduleBuilder(verify(parse_module(RAGGED)))
    builder.split("j", factors=(None, 4))
    y = np.full(4, -1, np.float32)
    run(builder.module, {"y": y, "p": np.array([0, 2, 2, 5], np.int32), "m": 3, "n": 4})
    np.testing.assert_array_equal(y, [2, 2, 1, -1])
