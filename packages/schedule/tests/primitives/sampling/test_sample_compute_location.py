"""`sample_compute_location`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import EPILOGUE, OUTSIDE

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("sample_compute_location.move", OUTSIDE, {"block": "made", "name": "place", "move": "split"}),
    ("sample_compute_location.no_candidate", COPY, {"block": "copy", "name": "place"}),
    (
        "sample_compute_location.decision",
        EPILOGUE,
        {"block": "after", "name": "place", "move": "reverse_compute_at", "decision": "j"},
    ),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("sample_compute_location", arguments)) == code
