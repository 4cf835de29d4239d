"""`vectorize`: programs before and after, and programs that it refuses."""

from __future__ import annotations

import pytest
from before_and_after import require_change
from nest_programs import COPY, SUM
from refused import reason_of
from refused_programs import LAST_WINS, PARALLEL, SCATTER, SYMBOLIC, TRIANGLE

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

ONE_ELEMENT = SCATTER.replace("V[T.int64(P[vi])]", "V[0]")
LANES_MEET = """
for i in T.serial(8):
    with T.block("shared"):
        vi = T.axis.reduce(8, i)
        V[T.int64(P[vi])] = V[T.int64(P[vi])] + W[vi]
"""
SATURATING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where(V[vi] < 5.0)
            V[vi] = V[vi] + X[vi, vj]
"""
BEFORE_AND_AFTER = {
    "lanes of a reduction": (
        SUM, {"loop": "j"}, ("j",),
        """
for i in T.serial(8):
    for j in T.vectorized(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.block_attr({"reassociates": True})
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("vectorize.kind", PARALLEL, {"loop": "i"}),
    ("vectorize.rest", COPY, {"loop": "i", "rest": "skipped"}),
    ("vectorize.innermost", COPY, {"loop": "i"}),
    ("vectorize.extent", TRIANGLE, {"loop": "j"}),
    ("vectorize.innermost", SYMBOLIC, {"loop": "i"}),
    ("vectorize.race", ONE_ELEMENT, {"loop": "i"}),
    ("vectorize.not_proved", SCATTER, {"loop": "i"}),
    ("vectorize.not_proved", LANES_MEET, {"loop": "i"}),
    ("vectorize.not_reducer", LAST_WINS, {"loop": "j"}),
    ("vectorize.not_reducer", SATURATING, {"loop": "j"}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("vectorize", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("vectorize", arguments)) == code
