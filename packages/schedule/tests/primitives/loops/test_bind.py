"""`bind`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from refused import reason_of
from refused_programs import LAST_WINS, LATE, SCATTER, SKEWED, SYMBOLIC

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

BLOCKS = """
for i in T.serial(8):
    for x in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("four"):
            vi, vx = T.axis.remap("SS", [i, x])
            Y[vi, vx] = X[vi, vx]
    for j in T.serial(8):
        with T.block("eight"):
            wi, wj = T.axis.remap("SS", [i, j])
            Z[wi, wj] = X[wi, wj]
"""
IN_BLOCKS = BLOCKS.replace("i in T.serial(8)", 'i in T.thread_binding(8, thread="blockIdx.x")')
REFUSED = [
    ("bind.thread", COPY, {"loop": "i", "thread": "threadIdx.w"}),
    ("bind.start", LATE, {"loop": "i", "thread": "blockIdx.x"}),
    ("bind.duplicate", BLOCKS, {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.extent", IN_BLOCKS, {"loop": "j", "thread": "threadIdx.x"}),
    ("bind.extent", SYMBOLIC, {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.race", SUM, {"loop": "j", "thread": "blockIdx.x"}),
    ("bind.race", SKEWED, {"loop": "i", "thread": "blockIdx.x"}),
    ("bind.not_proved", SCATTER, {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.not_reducer", LAST_WINS, {"loop": "j", "thread": "threadIdx.x"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("bind", arguments)) == code
