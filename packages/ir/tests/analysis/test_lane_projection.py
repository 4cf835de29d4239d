"""The projection of a vector expression to one lane has the value that the interpreter computes there."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer_ir.analysis.lane_projection import LANE_RULES, in_lane, lane_of
from gossamer_ir.core.build import index, index_var
from gossamer_ir.core.expression_kinds import EXPR_KINDS
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Broadcast, LaneReduce, Ramp, Store, TransposeReduce, Var
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify

PROGRAM = """
@T.prim_func
def f(p: T.handle, q: T.handle, x: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (8,), "int64")
    Q = T.match_buffer(q, (8,), "int32")
    X = T.match_buffer(x, (8,), "float32")
    Y = T.match_buffer(y, (4,), "DTYPE")
    Y[T.ramp(0, 1, 4)] = VALUE
"""
VECTORS = {
    "a ramp": "T.ramp(n, P[1], 4)",
    "a ramp of narrow integers that wraps": "T.cast(T.ramp(T.int32(2147483646), Q[1], 4), 'int64x4')",
    "a sum": "T.ramp(n, 2, 4) + T.broadcast(P[0], 4)",
    "a negative": "-T.ramp(n, 2, 4)",
    "a load": "P[T.ramp(0, 2, 4)]",
    "a load of places": "P[P[T.ramp(0, 1, 4)]]",
    "a masked load": "T.load(P, T.ramp(6, 1, 4), predicate=T.ramp(6, 1, 4) < T.broadcast(8, 4), "
    "passthrough=T.broadcast(n, 4))",
    "a choice": "T.Select(T.ramp(0, 1, 4) < T.broadcast(n, 4), T.ramp(0, 3, 4), P[T.ramp(4, 1, 4)])",
    "a choice for all": "T.if_then_else(n > 2, T.ramp(0, 3, 4), P[T.ramp(4, 1, 4)])",
    "widened": "T.cast(Q[T.ramp(1, 2, 4)], 'int64x4')",
    "reduced": "T.broadcast(T.lane_reduce('add', P[T.ramp(0, 1, 8)]), 4)",
    "reduced together": "T.transpose_reduce('max', P[T.ramp(0, 1, 4)], P[T.ramp(1, 1, 4)], "
    "P[T.ramp(2, 1, 4)], P[T.ramp(3, 1, 4)])",
    "a function": "T.sqrt(T.abs(X[T.ramp(2, 1, 4)]))",
    "bits": "T.reinterpret(X[T.ramp(2, 1, 4)], 'int32x4')",
}
LANE = index_var("lane")


def stored(text, value):
    dtype = {"a function": "float32", "bits": "int32"}.get(value, "int64")
    module = parse_module(PROGRAM.replace("DTYPE", dtype).replace("VALUE", text))
    (function,) = verify(module).functions
    return module, function


def result(module, function):
    arguments = {
        "p": np.array([3, 1, 2, 7, 0, 5, 6, 4]), "q": np.arange(8, dtype=np.int32) * 5 - 4,
        "x": np.linspace(-2, 3, 8, dtype=np.float32), "n": 3,
        "y": np.zeros(4, {"float32": np.float32, "int32": np.int32}.get(function.buffers[3].dtype, np.int64)),
    }  # fmt: skip
    run(module, arguments)
    return arguments["y"]


@pytest.mark.parametrize("name", VECTORS)
def test_each_lane(name):
    module, function = stored(VECTORS[name], name)
    (store,) = function.body
    lanes = [lane_of(store.value, index(lane)) for lane in range(4)]
    stores = tuple(Store("Y", (index(lane),), value) for lane, value in enumerate(lanes))
    alone = replace(module, functions=(replace(function, body=stores),))
    verify(alone)
    np.testing.assert_array_equal(result(alone, function), result(module, function))


@pytest.mark.parametrize("name", VECTORS)
def test_no_vector_of_lanes_is_left(name):
    _, function = stored(VECTORS[name], name)
    value = in_lane(function.body[0].value, LANE)
    reduced = [
        inner for reduction in collect(LaneReduce, value) for inner in collect(Ramp, reduction)
    ]
    assert len(collect(Ramp, value)) == len(reduced)
    assert not collect((Broadcast, TransposeReduce), value)


def test_a_vector_in_a_variable_has_unknown_lanes():
    vector = Var("v", "int64x4")
    assert lane_of(vector, LANE) is None
    assert lane_of(vector, LANE, kept=lambda var: var) == vector


def test_every_vector_that_is_not_elementwise_has_a_rule():
    with_own_rule = {kind for kind, entry in EXPR_KINDS.items() if entry.lanes == "own rule"}
    assert LANE_RULES.keys() == with_own_rule
