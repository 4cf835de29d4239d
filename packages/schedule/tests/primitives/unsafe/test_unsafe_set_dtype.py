"""`unsafe_set_dtype`: results with wider and narrower buffers, and programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY
from program_results import outcome
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples

ALLOCATED = """
Q = T.alloc_buffer((8,), "float32")
for k in T.serial(8):
    Q[k] = V[k]
"""
SEARCHED = """
Q = T.alloc_buffer((8,), "int32")
for i in T.serial(8):
    Q[i] = P[i]
W[0] = T.float32(T.search("lower", Q, begin=0, end=8, value=3))
"""
REFUSED = [
    ("unsafe_set_dtype.dtype", ALLOCATED, {"buffer": "Q", "dtype": "bool"}),
    ("unsafe_set_dtype.parameter", COPY, {"buffer": "X", "dtype": "float64"}),
    ("unsafe_set_dtype.other_access", SEARCHED, {"buffer": "Q", "dtype": "float64"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("unsafe_set_dtype", arguments)) == code


SUMS = parse_module("""
@T.prim_func
def sums(x: T.handle, y: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, n), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    S = T.alloc_buffer((m,), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + X[vi, vj] - 0.1
    for k in T.serial(m):
        with T.block("copy"):
            vk = T.axis.spatial(m, k)
            Y[vk] = S[vk]
""")


def summed(module, x) -> np.ndarray:
    y = np.zeros(len(x), np.float32)
    run(verify(module), {"x": x, "y": y, "m": len(x), "n": x.shape[1]})
    return y


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (2, 500)])
def test_a_wider_accumulator_rounds_once(shape):
    x = np.random.default_rng(1).random(shape).astype(np.float32)
    module = ScheduleBuilder(SUMS).unsafe_set_dtype("S", dtype="float64").module
    exact = (x.astype(np.float64) - np.float64(np.float32(0.1))).sum(1)
    np.testing.assert_array_equal(summed(module, x), exact.astype(np.float32))
    if x.size:
        assert not np.array_equal(summed(SUMS, x), exact.astype(np.float32))


def test_a_narrower_buffer_keeps_less():
    x = np.full((1, 3), 1000.3, np.float32)
    module = ScheduleBuilder(SUMS).unsafe_set_dtype("S", dtype="float16").module
    assert summed(module, x)[0] == np.float16(summed(module, x)[0])
    assert module.functions[0].annotations == (("unsafe", "set_dtype(S)"),)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64", "float16", "bfloat16"])
def test_small_integers_are_the_same_in_every_dtype(program, dtype):
    text = """
Q = T.alloc_buffer((8, 8), "float32")
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("make"):
            vi, vj = T.axis.remap("SS", [i, j])
            Q[vi, vj] = X[vi, vj] + 1.0
for k in T.serial(8):
    Q[k, 0] = Q[k, 1]
    Q[k, 2] = T.max(Q[k, 3], V[k]) * Q[k, 4]
    Y[k, T.int64(P[T.int64(T.abs(Q[k, 0]))])] = Q[k, 2]
"""
    module = program(text)
    builder = ScheduleBuilder(module).unsafe_set_dtype("Q", dtype=dtype)
    assert outcome(builder.module) == outcome(module)
    back = builder.unsafe_set_dtype("Q", dtype="float32")
    assert outcome(back.module) == outcome(module)


def test_a_sparse_buffer_and_its_fill_value():
    cached = ScheduleBuilder(examples.SPMM_POSITION).cache_read("csrmm", buffer="A", scope="local")
    module = cached.unsafe_set_dtype("A_local", dtype="float64").module
    assert (
        next(buffer for buffer in module.functions[0].buffers if buffer.name == "A_local").dtype
        == "float64"
    )
    verify(module)
