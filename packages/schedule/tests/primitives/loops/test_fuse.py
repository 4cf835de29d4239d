"""`fuse`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from refused import reason_of
from refused_programs import FOLLOWING, LATE, PARALLEL, TRIANGLE, TWO_COPIES

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

MEETING = """
for i, j in T.grid(8, n):
    with T.block("meet"):
        vi, vj = T.axis.remap("RR", [i, j])
        with T.init():
            V[vi] = 0.0
        V[vi] = V[vi] + X[vi, vj]
"""
MAYBE_EMPTY = SUM.replace("for j in T.serial(8)", "for j in T.serial(n)")
NEGATIVE = COPY.replace("T.serial(8)", "T.serial(n - 3)")
REFUSED = [
    ("fuse.loops", COPY, {"loops": ("i",)}),
    ("fuse.not_nested", TWO_COPIES, {"loops": ("i", "j")}),
    ("fuse.not_nested", COPY, {"loops": ("j", "i")}),
    ("fuse.start", LATE, {"loops": ("i", "j")}),
    ("fuse.kind", PARALLEL, {"loops": ("i", "j")}),
    ("fuse.dependence", TRIANGLE, {"loops": ("i", "j")}),
    ("fuse.not_proved", MAYBE_EMPTY, {"loops": ("i", "j")}),
    ("fuse.not_proved", MEETING, {"loops": ("i", "j")}),
    ("fuse.not_proved", NEGATIVE, {"loops": ("i", "j")}),
    ("fuse.not_proved", FOLLOWING, {"loops": ("i", "j")}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("fuse", arguments)) == code
