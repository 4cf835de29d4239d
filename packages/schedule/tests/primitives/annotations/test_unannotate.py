"""`unannotate`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("unannotate.no_key", COPY, {"name": "i", "key": "a"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("unannotate", arguments)) == code
