"""`split`: programs before and after, iterations beyond the end, and programs that it refuses."""
# ruff: noqa: E501  (scripts have no line breaks inside an expression)

from __future__ import annotations

import numpy as np
import pytest
from before_and_after import require_change
from nest_programs import COPY, RAGGED
from refused import reason_of
from refused_programs import LATE, PARALLEL, SYMBOLIC

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply

INIT_BY_LOOP = """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i])):
        with T.block("last"):
            vj = T.axis.reduce(8, j)
            with T.init():
                V[i] = 0
            V[i] = vj
"""
BARE = """
for i in T.serial(7):
    W[i] = V[i]
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
"""
BEFORE_AND_AFTER = {
    "exact factors need no predicate": (
        COPY, {"loop": "j", "factors": (None, 4)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial(2):
        for j_1 in T.serial(4):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 4 + j_1)
                Y[vi, vj] = X[vi, vj]
""",
    ),
    "all factors given": (
        COPY, {"loop": "j", "factors": (3, 3)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
""",
    ),
    "extents that load are guarded": (
        RAGGED, {"loop": "i", "factors": (None, 3)}, ("i_0", "i_1"),
        """
for i_0 in T.serial(3):
    for i_1 in T.serial(3):
        for j in T.serial(T.if_then_else(i_0 * 3 + i_1 < 8, T.int64(P[i_0 * 3 + i_1 + 1]) - T.int64(P[i_0 * 3 + i_1]), 0)):
            with T.block("scale"):
                vi = T.axis.spatial(8, i_0 * 3 + i_1)
                vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j)
                T.where(vi < 8)
                V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
""",
    ),
    "a ragged loop is bounded by its domain": (
        RAGGED, {"loop": "j", "factors": (None, 4)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial((T.int64(P[i + 1]) - T.int64(P[i]) + 3) // 4):
        for j_1 in T.serial(4):
            with T.block("scale"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j_0 * 4 + j_1)
                T.where(vj < T.int64(P[vi + 1]) - T.int64(P[vi]))
                V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
""",
    ),
    "statements outside of blocks": (
        BARE, {"loop": "i", "factors": (None, 2)}, ("i_0", "i_1"),
        """
for i_0 in T.serial(4):
    for i_1 in T.serial(2):
        if i_0 * 2 + i_1 < 7:
            W[i_0 * 2 + i_1] = V[i_0 * 2 + i_1]
            for j in T.serial(8):
                with T.block("copy"):
                    vi = T.axis.spatial(7, i_0 * 2 + i_1)
                    vj = T.axis.spatial(8, j)
                    T.where(vi < 7)
                    Y[vi, vj] = X[vi, vj]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("split.factors", COPY, {"loop": "j", "factors": (None, None)}),
    ("split.factors", COPY, {"loop": "j", "factors": (None, 0)}),
    ("split.factors", COPY, {"loop": "j", "factors": (None, "n")}),
    ("split.factors", COPY, {"loop": "j", "factors": ()}),
    ("split.factors", COPY, {"loop": "j", "factors": (2, 3)}),
    ("split.not_proved", SYMBOLIC, {"loop": "i", "factors": (2, 3)}),
    ("split.not_proved", INIT_BY_LOOP, {"loop": "j", "factors": (2, None, 2)}),
    ("split.start", LATE, {"loop": "i", "factors": (None, 3)}),
    ("split.kind", PARALLEL, {"loop": "i", "factors": (None, 3)}),
    ("split.text", COPY, {"loop": "i", "factors": (None, "width")}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("split", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("split", arguments)) == code


EIGHT = """
@T.prim_func
def f(v: T.handle, y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    V = T.match_buffer(v, (8,), "int64")
    Y = T.match_buffer(y, (8,), "int64")"""
TRIANGLE = """
for j in T.serial(8):
    for k in T.serial(HEADER):
        with T.block("count"):
            BLOCK
            Y[vk] = Y[vk] + 1
"""
READ_BEYOND = {
    "by the value of an iterator": ("j + 1", "vk = T.axis.spatial(8, V[k])"),
    "by a predicate": ("j + 1", "vk = T.axis.spatial(8, k)", "T.where(V[vk] > 1)"),
    "from a start": ("j, j + 1", "vk = T.axis.spatial(8, V[k])"),
    "by a start": ("V[j], V[j] + 1", "vk = T.axis.spatial(8, k)"),
    "by an extent": ("V[j] + 1", "vk = T.axis.spatial(8, k)"),
}


@pytest.mark.parametrize("case", READ_BEYOND)
def test_iterations_beyond_a_split_loop_read_nothing(case):
    header, *lines = READ_BEYOND[case]
    block = ("\n" + " " * 12).join(("vj = T.axis.reduce(8, j)", *lines))
    body = TRIANGLE.replace("HEADER", header).replace("BLOCK", block).replace("\n", "\n    ")
    module = verify(parse_module(EIGHT + body))
    outputs = []
    for each in (module, ScheduleBuilder(module).split("j", factors=(None, 3)).module):
        arrays = {"v": np.arange(8), "y": np.zeros(8, int)}
        run(each, arrays)
        outputs.append(arrays["y"].tolist())
    assert outputs[0] == outputs[1] != [0] * 8


@pytest.mark.parametrize("init", ["", "with T.init():\n                Y[0] = 0"])
def test_a_loop_that_never_runs_reads_nothing_when_it_is_split(init):
    body = f"""
    for j in T.serial(0):
        with T.block("count"):
            vj = T.axis.reduce(8, V[0] + j)
            {init}
            Y[0] = Y[0] + vj"""
    module = verify(parse_module(EIGHT.replace("(v, (8,)", "(v, (0,)") + body))
    for each in (module, ScheduleBuilder(module).split("j", factors=(2, 3)).module):
        arrays = {"v": np.zeros(0, int), "y": np.ones(8, int)}
        run(each, arrays)
        assert arrays["y"].tolist() == [0 if init else 1] + [1] * 7
