"""`unroll`: programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of
from refused_programs import PARALLEL, SYMBOLIC

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("unroll.kind", PARALLEL, {"loop": "i"}),
    ("unroll.extent", SYMBOLIC, {"loop": "i"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("unroll", arguments)) == code
