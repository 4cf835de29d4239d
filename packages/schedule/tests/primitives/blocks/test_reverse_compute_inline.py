"""`reverse_compute_inline`: programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of
from refused_programs import BEHIND, LANES, LAST_WINS, STAGED, STAGED_HALF, STAGED_SUM

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

REFUSED = [
    ("reverse_compute_inline.form", STAGED_SUM, {"block": "second"}),
    ("reverse_compute_inline.element", BEHIND, {"block": "second"}),
    (
        "reverse_compute_inline.element",
        STAGED.replace("= Q[wh, wk]", "= Q[wh, wh]"),
        {"block": "second"},
    ),
    (
        "reverse_compute_inline.writers",
        STAGED.replace("Q[vi, vj] =", "Q[0, vj] = 0.0\n            Q[vi, vj] ="),
        {"block": "second"},
    ),
    (
        "reverse_compute_inline.predicate",
        STAGED.replace("Z[wh, wk] =", "T.where(h + k < 9)\n            Z[wh, wk] ="),
        {"block": "second"},
    ),
    ("reverse_compute_inline.scope", STAGED + "    Y[h, 0] = 1.0\n", {"block": "second"}),
    (
        "reverse_compute_inline.other_access",
        STAGED + LAST_WINS.replace("= X[", "= Q["),
        {"block": "second"},
    ),
    (
        "reverse_compute_inline.other_access",
        STAGED.replace("Z[wh, wk] =", "X[wh, wk] ="),
        {"block": "second"},
    ),
    (
        "reverse_compute_inline.not_proved",
        STAGED.replace("Z[wh, wk] =", "Z[wh, wk // 2] ="),
        {"block": "second"},
    ),
    (
        "reverse_compute_inline.not_proved",
        STAGED_HALF.replace("[h, k]", "[h, h]"),
        {"block": "second"},
    ),
    (
        "reverse_compute_inline.kind",
        LANES.replace("[h, k])", "[h, k])\n            T.where(wk < wh)"),
        {"block": "second"},
    ),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("reverse_compute_inline", arguments)) == code
