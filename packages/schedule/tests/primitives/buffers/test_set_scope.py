"""`set_scope`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import FETCH

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

THREADS = FETCH.replace(
    "for k in T.serial(8)", 'for k in T.thread_binding(8, thread="threadIdx.x")'
)
REFUSED = [
    ("set_scope.scope", FETCH, {"buffer": "L", "scope": "l1"}),
    ("set_scope.parameter", COPY, {"buffer": "X", "scope": "local"}),
    ("set_scope.threads", THREADS, {"buffer": "L", "scope": "local"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("set_scope", arguments)) == code
