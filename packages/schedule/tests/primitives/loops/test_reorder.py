"""`reorder`: programs before and after, and programs that it refuses."""

from __future__ import annotations

import pytest
from before_and_after import require_change
from nest_programs import COPY
from refused import reason_of
from refused_programs import FOLLOWING, PARALLEL, REPEATED_INIT, SKEWED, TRIANGLE, TWO_COPIES

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

TOTAL = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("total"):
            vi, vj = T.axis.remap("RR", [i, j])
            V[0] = V[0] + X[vi, vj]
"""
BEFORE_AND_AFTER = {
    "reordered reductions are marked": (
        TOTAL, {"loops": ("j", "i")}, ("j", "i"),
        """
for j in T.serial(8):
    for i in T.serial(8):
        with T.block("total"):
            vi, vj = T.axis.remap("RR", [i, j])
            T.block_attr({"reassociates": True})
            V[0] = V[0] + X[vi, vj]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("reorder.loops", COPY, {"loops": ("i",)}),
    ("reorder.loops", COPY, {"loops": ("i", "i")}),
    ("reorder.not_nested", TWO_COPIES, {"loops": ("k", "j")}),
    ("reorder.not_nested", TWO_COPIES, {"loops": ("j", "i")}),
    ("reorder.kind", PARALLEL, {"loops": ("j", "i")}),
    ("reorder.dependence", TRIANGLE, {"loops": ("j", "i")}),
    ("reorder.not_proved", SKEWED, {"loops": ("j", "i")}),
    ("reorder.not_proved", REPEATED_INIT, {"loops": ("j", "t")}),
    ("reorder.not_proved", FOLLOWING, {"loops": ("j", "i")}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("reorder", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("reorder", arguments)) == code
