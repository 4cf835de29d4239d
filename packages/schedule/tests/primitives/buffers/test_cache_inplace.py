"""`cache_inplace`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

UPDATE = """
for i in T.serial(8):
    with T.block("update"):
        vi = T.axis.spatial(8, i)
        V[vi] = V[vi] + W[vi]
"""
BESIDE = UPDATE + "    W[i] = V[i]\n"
CONDITIONED = UPDATE.replace("        V[vi] =", "        T.where(V[vi] < 3.0)\n        V[vi] =")
REFUSED = [
    ("cache_inplace.loads", COPY, {"block": "copy", "buffer": "Y", "scope": "local"}),
    ("cache_inplace.loads", COPY, {"block": "copy", "buffer": "X", "scope": "local"}),
    ("cache_inplace.init", SUM, {"block": "sum", "buffer": "V", "scope": "local"}),
    ("cache_inplace.other_access", BESIDE, {"block": "update", "buffer": "V", "scope": "local"}),
    (
        "cache_inplace.other_access",
        CONDITIONED,
        {"block": "update", "buffer": "V", "scope": "local"},
    ),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("cache_inplace", arguments)) == code
