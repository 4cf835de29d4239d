"""`lift_loop`: lifted loops compute the same, and programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from program_results import scaled
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module, print_module
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples

INSIDE = """
for i in T.serial(8):
    with T.block("row"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("copy"):
                ui = T.axis.spatial(8, vi)
                uj = T.axis.spatial(8, j)
                Y[ui, uj] = X[ui, uj]
"""
REDUCED_INSIDE = """
for i in T.serial(8):
    with T.block("row"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(n):
            with T.block("sum"):
                uj = T.axis.reduce(n, j)
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, uj]
"""
FIRST = INSIDE.replace(
    "        for j in T.serial(8)",
    "        with T.init():\n            V[vi] = 0.0\n        for j in T.serial(8)",
)
STOPPING = INSIDE.replace(
    "        for j in T.serial(8)", "        T.where(Y[vi, 0] < 1.0)\n        for j in T.serial(8)"
)
REFUSED = [
    ("lift_loop.not_alone", COPY, {"loop": "j"}),
    ("lift_loop.init", FIRST, {"loop": "j"}),
    ("lift_loop.init", REDUCED_INSIDE, {"loop": "j"}),
    ("lift_loop.not_proved", STOPPING, {"loop": "j"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("lift_loop", arguments)) == code


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (5, 3), (1, 1)])
@pytest.mark.parametrize("condition", ["", "            T.where(i * 2 < 5)\n"])
def test_a_lifted_loop_does_the_same(sizes, condition):
    printed = print_module(examples.NESTED)
    text = printed.replace("            for j in", f"{condition}            for j in")
    assert (text != printed) == bool(condition)
    before = parse_module(text)
    after = ScheduleBuilder(before).lift_loop("j").module
    assert scaled(after, sizes).tolist() == scaled(before, sizes).tolist()
