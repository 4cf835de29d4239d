"""`storage_align`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import FETCH

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("storage_align.parameter", COPY, {"buffer": "X", "axis": 0, "factor": 16}),
    ("storage_align.axis", FETCH, {"buffer": "L", "axis": 1, "factor": 16}),
    ("storage_align.factor", FETCH, {"buffer": "L", "axis": 0, "factor": 0}),
    ("storage_align.factor", FETCH, {"buffer": "L", "axis": 0, "factor": 4, "offset": 4}),
    ("storage_align.shape", FETCH, {"buffer": "S", "axis": 0, "factor": 4, "offset": 1}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("storage_align", arguments)) == code
