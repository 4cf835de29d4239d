"""`parallel`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from refused import reason_of
from refused_programs import FETCH, PARALLEL, SCATTER

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

SCALED = SCATTER.replace("V[T.int64(P[vi])]", "V[vi * n]")
CHANGING = SCATTER.replace(
    "V[T.int64(P[vi])] = W[vi]", "V[vi + T.int64(P[0])] = W[vi]\n        P[vi] = 1"
)
REFUSED = [
    ("parallel.kind", COPY.replace("for j in T.serial", "for j in T.unroll"), {"loop": "j"}),
    ("parallel.nested", PARALLEL, {"loop": "j", "accumulate": "privatized"}),
    ("parallel.race", SUM, {"loop": "j"}),
    ("parallel.not_proved", SCATTER, {"loop": "i"}),
    ("parallel.not_proved", SCALED, {"loop": "i"}),
    ("parallel.not_proved", CHANGING, {"loop": "i"}),
    ("parallel.weight", COPY, {"loop": "i", "weight": "8 - i"}),
    ("parallel.weight", COPY, {"loop": "i", "weight": "n * i"}),
    ("parallel.weight", COPY, {"loop": "i", "weight": "T.int64(P[i])"}),
    ("parallel.text", COPY, {"loop": "i", "weight": "i +"}),
    (
        "parallel.not_proved",
        "T.assume(monotone(P))" + COPY,
        {"loop": "i", "weight": "T.int64(P[i + 1])"},
    ),
    ("parallel.text", COPY, {"loop": "i", "weight": "T.int64(P[0, i])"}),
    ("parallel.grain", COPY, {"loop": "i", "grain": 0}),
    (
        "parallel.pipelined",
        FETCH.replace("T.serial(8)", "T.serial(8, annotations={'pipeline': 2})", 1),
        {"loop": "i"},
    ),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("parallel", arguments)) == code
