"""`sample_perfect_tile`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("sample_perfect_tile.name", COPY, {"loop": "i", "name": "", "parts": 2}),
    ("sample_perfect_tile.parts", COPY, {"loop": "i", "name": "t", "parts": 1}),
    ("sample_perfect_tile.largest", COPY, {"loop": "i", "name": "t", "parts": 2, "largest": 0}),
    (
        "sample_perfect_tile.decision",
        COPY,
        {"loop": "i", "name": "t", "parts": 2, "decision": (8,)},
    ),
    (
        "sample_perfect_tile.decision",
        COPY,
        {"loop": "i", "name": "t", "parts": 2, "decision": (2, None)},
    ),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("sample_perfect_tile", arguments)) == code
