"""`sample_categorical`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("sample_categorical.name", COPY, {"name": "a b", "candidates": (1,)}),
    ("sample_categorical.candidates", COPY, {"name": "a", "candidates": ()}),
    ("sample_categorical.candidates", COPY, {"name": "a", "candidates": (1, 2), "weights": (0, 0)}),
    ("sample_categorical.decision", COPY, {"name": "a", "candidates": (1, 2), "decision": 2}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("sample_categorical", arguments)) == code
