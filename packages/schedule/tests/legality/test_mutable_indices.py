"""Indices that are read from buffers that iterations write, also with a private buffer for each iteration."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder

HEAD = """
@T.prim_func
def program(v: T.handle, x: T.handle, p: T.handle):
    T.func_attr({"sparse_tir_level": 0})
    V = T.match_buffer(v, (16,), "int64")
    X = T.match_buffer(x, (8, 16), "int64")
    P = T.match_buffer(p, (8,), "int64")
"""
OWN = """
for i in T.serial(8):
    W = T.alloc_buffer((1,), "int64")
    W[0] = P[i]
"""
SHARING = {
    "offset": OWN + "    V[i + W[0]] = i",
    "of a let": OWN + "    a: T.int64 = W[0]\n    V[i + a] = i",
    "multiplier": OWN + "    V[i * W[0]] = i",
    "sum": OWN + "    V[i + W[0]] = V[i + W[0]] + i",
    "extent": OWN + "    for j in T.serial(W[0]):\n        V[i * W[0] + j] = i",
}
APART = {
    "another dimension": OWN + "    X[i, W[0]] = i",
    "written before": """
W = T.alloc_buffer((1,), "int64")
W[0] = P[3]
for i in T.serial(8):
    V[i + W[0]] = i
""",
}


def program(body):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return verify(parse_module(HEAD + lines))


@pytest.mark.parametrize("step", ["parallel", "vectorize"])
@pytest.mark.parametrize("body", SHARING.values(), ids=SHARING.keys())
def test_what_an_iteration_writes_says_nothing_about_others(body, step):
    builder = ScheduleBuilder(program(body))
    with pytest.raises(ScheduleError) as caught:
        getattr(builder, step)("i")
    assert caught.value.code in (f"schedule.{step}.not_proved", f"schedule.{step}.innermost")


@pytest.mark.parametrize("body", APART.values(), ids=APART.keys())
def test_other_indices_tell_elements_apart(body):
    module = program(body)
    builder = ScheduleBuilder(module)
    builder.parallel("i")
    results = []
    for version in (module, builder.module):
        arrays = {
            "v": np.zeros(16, np.int64),
            "x": np.zeros((8, 16), np.int64),
            "p": np.array([0, 3, 1, 4, 1, 5, 2, 6]),
        }
        run(version, arrays, chunks=3)
        results.append((arrays["v"], arrays["x"]))
    np.testing.assert_equal(*results)
    assert sum(map(np.count_nonzero, results[0])) == 7
