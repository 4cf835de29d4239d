"""`lift_loop`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

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
