"""`cache_read`: which elements are copied, under which conditions, and programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import SUM
from refused import reason_of
from refused_programs import FILLED, SHARED

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit.show import body_text

INNER = """
for i in T.serial(8):
    with T.block("inner"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            Y[vi, j] = X[vi, j]
"""
UNSAFE = """
for i in T.serial(4):
    with T.block("gather"):
        vi = T.axis.spatial(8, i)
        V[vi] = Y[T.int64(P[vi]), 0]
"""
ALLOCATED = """
for i in T.serial(8):
    R = T.alloc_buffer((8,), "float32")
    for j in T.serial(8):
        R[j] = X[i, j]
    for k in T.serial(8):
        with T.block("inner"):
            vi, vk = T.axis.remap("SS", [i, k])
            Y[vi, vk] = R[vk]
"""
LOCAL = {"scope": "local"}
REFUSED = [
    ("cache_read.scope", SUM, {"block": "sum", "buffer": "X", "scope": "l1"}),
    ("cache_read.inner", ALLOCATED, {"block": "inner", "buffer": "R", **LOCAL}),
    ("cache_read.no_buffer", SUM, {"block": "sum", "buffer": "Q", **LOCAL}),
    ("cache_read.loads", SUM, {"block": "sum", "buffer": "Y", **LOCAL}),
    ("cache_read.written", SUM, {"block": "sum", "buffer": "V", **LOCAL}),
    ("cache_read.domain", FILLED, {"block": "gather", "buffer": "Y", **LOCAL}),
    ("cache_read.domain", INNER, {"block": "inner", "buffer": "X", **LOCAL}),
    ("cache_read.not_proved", UNSAFE, {"block": "gather", "buffer": "Y", **LOCAL}),
    ("cache_read.race", SHARED, {"block": "copy", "buffer": "V", **LOCAL}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("cache_read", arguments)) == code


def test_a_stencil_is_cached_once_for_each_of_its_reads(program):
    stencil = """
for i in T.serial(7):
    with T.block("stencil"):
        vi = T.axis.spatial(7, i)
        V[vi] = W[vi] + W[vi + 1]
"""
    builder = ScheduleBuilder(program(stencil)).cache_read("stencil", buffer="W", scope="local")
    text = body_text(builder.module)
    assert "W_local[vi_c] = W[vi_c]\n" in text
    assert "W_local[vi_c + 1] = W[vi_c + 1]\n" in text


def test_an_element_is_read_into_a_cache_under_each_of_its_conditions_once(program):
    chosen = """
for i in T.serial(7):
    with T.block("chosen"):
        vi = T.axis.spatial(7, i)
        V[vi] = T.if_then_else(
            vi > 2, T.if_then_else(vi > 3, W[vi], 0.0) + W[vi] * W[vi], T.if_then_else(vi < 1, W[vi], 0.0))
"""
    builder = ScheduleBuilder(program(chosen)).cache_read("chosen", buffer="W", scope="local")
    condition = "vi_c > 2, True, T.if_then_else(not vi_c > 2, vi_c < 1, False)"
    assert f"if T.if_then_else({condition}):" in body_text(builder.module)


def test_what_only_a_loop_reads_is_read_into_a_cache_where_the_loop_runs(program):
    inside = """
for i in T.serial(8):
    with T.block("outer"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(n):
            with T.block("inner"):
                uj = T.axis.spatial(n, j)
                Y[vi, uj] = W[vi + 60]
"""
    builder = ScheduleBuilder(program(inside)).cache_read("outer", buffer="W", scope="local")
    result = np.zeros((8, 8), np.float32)
    zeros = {"x": result, "z": result.copy(), "v": np.zeros(64, np.float32)}
    arguments = zeros | {
        "y": result.copy(),
        "w": np.zeros(64, np.float32),
        "p": np.zeros(9, np.int32),
    }
    run(builder.module, arguments | {"n": 0})
    assert "if n > 0:" in body_text(builder.module)


SELECTED = """
for i in T.serial(8):
    with T.block("outer"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(n):
            CONDITION
            with T.block("inner"):
                vj = T.axis.reduce(n, j)
                with T.init():
                    V[T.int64(P[vi])] = 5.0
                V[T.int64(P[vi])] = V[T.int64(P[vi])] + 1.0
"""


@pytest.mark.parametrize(
    ("condition", "held"),
    [("", ()), ("if vi < 3:", ("if vi_c < 3:",))],
    ids=["an empty reduction", "a condition"],
)
def test_what_an_init_reads_is_read_into_a_cache_also_where_its_reduction_is_empty(
    program, condition, held
):
    lines = SELECTED.split("            CONDITION\n")
    inner = lines[1].replace("\n    ", "\n        ") if condition else lines[1]
    text = f"{lines[0]}            {condition}\n{'    ' if condition else ''}{inner}"
    module = program(text)
    after = ScheduleBuilder(module).cache_read("outer", buffer="P", scope="local").module
    conditions = tuple(line.strip() for line in body_text(after).splitlines() if "if " in line)
    assert conditions[: len(held)] == held
    for n in (0, 1, 3):
        results = []
        for version in (module, after):
            v, p = np.full(64, 7, np.float32), np.arange(9, dtype=np.int32)[::-1].copy()
            arguments = {name: np.zeros((8, 8), np.float32) for name in "xyz"}
            run(version, arguments | {"v": v, "w": np.zeros(64, np.float32), "p": p, "n": n})
            results.append(v)
        np.testing.assert_array_equal(*results)
