"""`store_nontemporal`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

COMBINE = """
larger = T.comm_reducer(lambda a, b: T.max(a, b), (T.float32("-inf"),))
for i in T.serial(8):
    with T.block("combine"):
        vi = T.axis.spatial(8, i)
        V[vi] = larger(V[vi], X[vi, 0])
"""
REFUSED = [
    ("store_nontemporal.no_store", COPY, {"block": "copy", "buffer": "X"}),
    ("store_nontemporal.read", SUM, {"block": "sum", "buffer": "V"}),
    ("store_nontemporal.read", COMBINE, {"block": "combine", "buffer": "V"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("store_nontemporal", arguments)) == code
