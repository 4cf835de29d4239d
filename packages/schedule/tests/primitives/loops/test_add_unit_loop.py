"""`add_unit_loop`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("add_unit_loop.no_name", COPY, {"name": "nowhere"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("add_unit_loop", arguments)) == code
