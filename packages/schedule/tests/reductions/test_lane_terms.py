"""Vector lanes that may share elements: terms are computed in lanes and added serially."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, replay, vectorize

SCRIPT = """
@T.prim_func
def scatter(p: T.handle, a: T.handle, y: T.handle, n: T.int64, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    A = T.match_buffer(a, (3, n), "DTYPE")
    Y = T.match_buffer(y, (m, 3), "DTYPE")
    T.assume(in_range(P, 0, m))
    for k in T.serial(3):
        for i in T.serial(n):
            with T.block("add"):
                vk, vi = T.axis.remap("SR", [k, i])
                T.where(CONDITION)
                Y[T.int64(P[vi]), vk] = VALUE
"""
OLD = "Y[T.int64(P[vi]), vk]"
VALUES = {
    "+": f"{OLD} + A[vk, vi]",
    "- on the right": f"A[vk, vi] * A[vk, vi] + {OLD}",
    "*": f"{OLD} * A[vk, vi]",
    "min": f"T.min({OLD}, A[vk, vi])",
    "max": f"T.max({OLD}, A[vk, vi])",
}


def scatter(value=VALUES["+"], *, dtype="float32", condition="vi >= 0"):
    texts = {"VALUE": value, "DTYPE": dtype, "CONDITION": condition}
    text = SCRIPT
    for name, put in texts.items():
        text = text.replace(name, put)
    return parse_module(text)


def results(module, *, count, dtype):
    random = np.random.default_rng(count)
    y = random.integers(-2, 3, (4, 3)).astype(dtype)
    values = {
        "p": random.integers(0, 4, count).astype(np.int32), "y": y, "n": count, "m": 4,
        "a": random.integers(-2, 3, (3, count)).astype(dtype),
    }  # fmt: skip
    run(verify(module), values)
    return y


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("condition", ["vi >= 0", "P[vi] > T.int32(1)"])
@pytest.mark.parametrize("count", [0, 1, 8, 29])
def test_each_lane_combines_its_term(value, dtype, condition, count):
    module = scatter(value, dtype=dtype, condition=condition)
    builder = ScheduleBuilder(module).split("i", factors=(None, 4))
    builder.vectorize("i_1", accumulate="atomic")
    result, expected = (results(one, count=count, dtype=dtype) for one in (builder.module, module))
    np.testing.assert_array_equal(result, expected)
    assert replay(module, builder.trace) == builder.module


def test_terms_are_those_of_one_iteration_of_the_loops_around():
    builder = ScheduleBuilder(scatter()).parallel("k").split("i", factors=(None, 4))
    builder.vectorize("i_1", accumulate="atomic").unroll("i_1_turn")
    (loop,) = builder.module.functions[0].body
    (tiles,) = loop.body
    assert [stmt.buffer.name for stmt in tiles.body if isinstance(stmt, Allocate)] == [
        "add_terms_1"
    ]
    assert builder.names == ("i_1_turn",)
    results(builder.module, count=9, dtype="float32")


REFUSED = [
    ("vectorize.accumulate", scatter(), {"loop": "i_1", "accumulate": "privatized"}),
    (
        "vectorize.accumulate",
        scatter(),
        {"loop": "i_1", "accumulate": "atomic", "remainder": "masked"},
    ),
    ("vectorize.no_reduction", scatter("A[vk, vi]"), {"loop": "i_1", "accumulate": "atomic"}),
    ("vectorize.extent", scatter(), {"loop": "i_0", "accumulate": "atomic"}),
]


@pytest.mark.parametrize(("code", "module", "arguments"), REFUSED)
def test_refusals(code, module, arguments):
    split = ScheduleBuilder(module).split("i", factors=(None, 4)).module
    if arguments["loop"] == "i_0":
        split = ScheduleBuilder(split).reorder("i_1", "i_0").module
    with pytest.raises(ScheduleError) as caught:
        vectorize(split, **arguments)
    assert caught.value.code == f"schedule.{code}"
