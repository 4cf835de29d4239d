"""`annotate`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("annotate.reserved", COPY, {"name": "i", "key": "reassociates", "value": True}),
    ("annotate.refused", COPY, {"name": "i", "key": "horizontal_fuse", "value": True}),
    ("annotate.no_name", COPY, {"name": "nowhere", "key": "a", "value": 1}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("annotate", arguments)) == code
