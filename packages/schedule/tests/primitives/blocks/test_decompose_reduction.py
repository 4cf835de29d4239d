"""`decompose_reduction`: programs before and after, and programs that it refuses."""

from __future__ import annotations

import pytest
from before_and_after import require_change
from nest_programs import BACKWARDS, COPY, SUM
from refused import reason_of
from refused_programs import MANY, REPEATED_INIT

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

READS_OF_OTHERS = SUM.replace("= V[vi] +", "= V[1] +")
LET_ABOVE = SUM.replace("        with T.block", "        t: T.int64 = j * 2\n        with T.block")
ALLOCATED_SUM = """
for i in T.serial(8):
    R = T.alloc_buffer((8,), "float32")
    with T.block("inner"):
        vi = T.axis.spatial(8, i)
        with T.init():
            R[vi] = 0.0
        R[vi] = R[vi] + X[vi, 0]
"""
BEFORE_AND_AFTER = {
    "init outside of all loops": (
        SUM, {"block": "sum", "loop": "i"}, ("sum_init", "i_init"),
        """
for i_init in T.serial(8):
    with T.block("sum_init"):
        vi_init = T.axis.spatial(8, i_init)
        V[vi_init] = 0.0
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            V[vi] = V[vi] + X[vi, vj]
""",
    ),
    "init of elements in which points of the reduction meet": (
        BACKWARDS, {"block": "sum", "loop": "i"}, ("sum_init", "i_init", "j_init"),
        """
for i_init in T.serial(8):
    for j_init in T.serial(i_init + 1):
        with T.block("sum_init"):
            vi_init, vj_init = T.axis.remap("SS", [i_init, j_init])
            V[vj_init] = 0.0
for i in T.serial(8):
    for j in T.serial(i + 1):
        with T.block("sum"):
            vi, vj = T.axis.remap("RS", [i, j])
            V[vj] = V[vj] + X[vi, vj]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("decompose_reduction.no_init", COPY, {"block": "copy", "loop": "i"}),
    ("decompose_reduction.not_enclosing", MANY, {"block": "sum", "loop": "h"}),
    ("decompose_reduction.too_deep", BACKWARDS, {"block": "sum", "loop": "j"}),
    ("decompose_reduction.dependence", LET_ABOVE, {"block": "sum", "loop": "i"}),
    ("decompose_reduction.not_proved", REPEATED_INIT, {"block": "sum", "loop": "t"}),
    ("decompose_reduction.not_proved", READS_OF_OTHERS, {"block": "sum", "loop": "i"}),
    ("decompose_reduction.inner", ALLOCATED_SUM, {"block": "inner", "loop": "i"}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(
        program(before), Step("decompose_reduction", arguments), names=names, after=after
    )


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("decompose_reduction", arguments)) == code
