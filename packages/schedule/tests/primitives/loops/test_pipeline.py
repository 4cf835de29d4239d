"""`pipeline`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import FETCH

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

PERHAPS_FETCHED = """
L = T.decl_buffer((8,), "float32")
for i in T.serial(8):
    for j in T.serial(n):
        with T.block("fetch"):
            vi, vj = T.axis.remap("SR", [i, j])
            L[vi] = W[vi]
    with T.block("use"):
        wi = T.axis.spatial(8, i)
        V[wi] = L[wi]
"""
REFUSED = [
    ("pipeline.stages", FETCH, {"loop": "i", "stages": 1}),
    ("pipeline.no_producer", COPY, {"loop": "i"}),
    ("pipeline.no_producer", FETCH.replace("= X[", "= Y["), {"loop": "i"}),
    ("pipeline.not_proved", FETCH.replace("L[wi, wk]", "L[wk, wi]"), {"loop": "i"}),
    ("pipeline.not_proved", PERHAPS_FETCHED, {"loop": "i"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("pipeline", arguments)) == code
