"""`cache_read`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import SUM
from refused import reason_of
from refused_programs import FILLED, SHARED

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

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
