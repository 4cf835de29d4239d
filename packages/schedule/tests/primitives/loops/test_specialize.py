"""`specialize`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

MEETING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SS", [i, j])
            with T.init():
                V[vi + vj] = 0.0
            V[vi + vj] = V[vi + vj] + X[vi, vj]
"""
REFUSED = [
    ("specialize.condition", COPY, {"name": "i", "condition": "n + 1"}),
    ("specialize.text", COPY, {"name": "i", "condition": "j == 1"}),
    ("specialize.not_proved", COPY, {"name": "i", "condition": "P[n] == 1"}),
    ("specialize.not_proved", MEETING, {"name": "j", "condition": "i == 1"}),
    ("specialize.init", SUM, {"name": "sum", "condition": "j == 0"}),
    ("specialize.no_name", COPY, {"name": "nowhere", "condition": "n == 1"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("specialize", arguments)) == code
