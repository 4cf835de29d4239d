"""`reverse_compute_at`: programs before and after, and programs that it refuses."""

from __future__ import annotations

import pytest
from before_and_after import require_change
from nest_programs import SUM
from refused import reason_of
from refused_programs import BEHIND, FIVE_ROWS, MANY, STAGED

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

SELECTED_AROUND = """
for t in T.serial(8):
    with T.block("around"):
        vt = T.axis.spatial(8, t)
        for i in T.serial(8):
            with T.block("made"):
                vi = T.axis.spatial(8, i)
                W[vi] = X[vi, 0]
        for j in T.serial(8):
            with T.block("used"):
                ut = T.axis.spatial(8, vt)
                uj = T.axis.reduce(8, j)
                V[ut] = V[ut] + W[ut] * X[uj, ut]
"""
PARTIAL = BEHIND.replace("for i in T.serial(8)", "for i in T.serial(4)")
BUSY = BEHIND.replace(
    "for h in",
    """with T.block("between"):
    Y[0, 0] = 1.0
for h in""",
)
RECURRENCE = BEHIND.replace("= Y[wh, wk]", "= Y[wh, wk] + Z[wh, 0]")
AHEAD = STAGED.replace("X[vi, vj]", "Z[vi // 2, vj]")
TWO = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
for h in T.serial(8):
    for k in T.serial(8):
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [h, k])
            Z[wh, wk] = Y[wh, wk] * W[wk]
"""
SPLIT2 = """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("first"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
for h in T.serial(8):
    for k in T.serial(8):
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [h, k])
            Z[wh, wk] = Y[wh, wk] * W[wk]
"""
BEFORE_AND_AFTER = {
    "a consumer moves into the outer loop": (
        TWO, {"block": "second", "loop": "i"}, ("k",),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
    for k in T.serial(8):
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [i, k])
            Z[wh, wk] = Y[wh, wk] * W[wk]
""",
    ),
    "a consumer moves into a tile": (
        SPLIT2, {"block": "second", "loop": "j_0"}, ("k",),
        """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("first"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
        for k in T.serial(3):
            with T.block("second"):
                wh = T.axis.spatial(8, i)
                wk = T.axis.spatial(8, j_0 * 3 + k)
                T.where(wk < 8)
                Z[wh, wk] = Y[wh, wk] * W[wk]
""",
    ),
    "a consumer moves to single elements": (
        TWO, {"block": "second", "loop": "j"}, (),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [i, j])
            Z[wh, wk] = Y[wh, wk] * W[wk]
""",
    ),
}  # fmt: skip
REFUSED = [
    (
        "reverse_compute_at.reduction",
        SUM.replace("V[vi]", "V[vi // 2]"),
        {"block": "sum", "loop": "i"},
    ),
    ("reverse_compute_at.reduction", RECURRENCE, {"block": "second", "loop": "i"}),
    (
        "reverse_compute_at.kind",
        BEHIND.replace("for i in T.serial", "for i in T.parallel"),
        {"block": "second", "loop": "i"},
    ),
    (
        "reverse_compute_at.binding",
        BEHIND.replace("[h, k]", "[h, h]"),
        {"block": "second", "loop": "i"},
    ),
    ("reverse_compute_at.scope", BEHIND, {"block": "first", "loop": "h"}),
    ("reverse_compute_at.other_access", BUSY, {"block": "second", "loop": "i"}),
    ("reverse_compute_at.other_access", AHEAD, {"block": "second", "loop": "i"}),
    (
        "reverse_compute_at.no_producer",
        BEHIND.replace("= Y[", "= X["),
        {"block": "second", "loop": "i"},
    ),
    ("reverse_compute_at.not_proved", MANY, {"block": "copy", "loop": "j"}),
    ("reverse_compute_at.not_proved", PARTIAL, {"block": "second", "loop": "i"}),
    ("reverse_compute_at.not_proved", SELECTED_AROUND, {"block": "used", "loop": "i"}),
    ("reverse_compute_at.binding", FIVE_ROWS, {"block": "second", "loop": "i"}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("reverse_compute_at", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("reverse_compute_at", arguments)) == code
