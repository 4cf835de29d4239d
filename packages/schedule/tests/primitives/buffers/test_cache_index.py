"""`cache_index`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

LOOKED_UP = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("looked_up"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[T.int64(P[T.int64(P[vi])]), vj]
"""
REFUSED = [
    ("cache_index.no_reuse", COPY, {"block": "copy", "scope": "local"}),
    ("cache_index.not_proved", LOOKED_UP, {"block": "looked_up", "scope": "local"}),
    ("cache_index.scope", LOOKED_UP, {"block": "looked_up", "scope": "cloud"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("cache_index", arguments)) == code
