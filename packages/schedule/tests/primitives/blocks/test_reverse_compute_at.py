"""`reverse_compute_at`: programs before and after, and programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from before_and_after import require_change, results_of
from nest_programs import SUM
from refused import reason_of
from refused_programs import BEHIND, FIVE_ROWS, MANY, STAGED

from gossamer_ir.interchange.records import Step
from gossamer_ir.verify import verify
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
TWO = BEHIND.replace("= Y[wh, wk]", "= Y[wh, wk] * W[wk]")
SPLIT2 = """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("first"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
""" + TWO[TWO.index("for h") :]
PARTS = """
for i in T.serial(8):
    for j in T.serial(4):
        for k in T.serial(2):
            with T.block("part"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = 0.0
                Y[vi, vj] = Y[vi, vj] + X[vi, vj * 2 + vk]
for i_c in T.serial(8):
    for j_c in T.serial(4):
        with T.block("sum"):
            ui, uj = T.axis.remap("RS", [i_c, j_c])
            V[uj] = V[uj] + Y[ui, uj]
"""
WITH_INIT = PARTS.replace(
    "            V[uj] = V[uj] +",
    """            with T.init():
                V[uj] = 0.0
            V[uj] = V[uj] +""",
)
IN_TILES = """
for i_0 in T.serial(3):
    for i_1 in T.serial(3):
        for j in T.serial(8):
            with T.block("part"):
                vi = T.axis.spatial(8, i_0 * 3 + i_1)
                vj = T.axis.spatial(8, j)
                T.where(vi < 8)
                Y[vi, vj] = X[vi, vj]
for i_c in T.serial(8):
    for j_c in T.serial(8):
        with T.block("sum"):
            ui, uj = T.axis.remap("RS", [i_c, j_c])
            V[uj] = V[uj] + Y[ui, uj]
"""
INNER_REDUCTION = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("part"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
for j_c in T.serial(8):
    for i_c in T.serial(8):
        with T.block("sum"):
            uj, ui = T.axis.remap("RR", [j_c, i_c])
            V[0] = V[0] + Y[ui, uj]
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
    "a reduction without an init is continued in each iteration": (
        PARTS, {"block": "sum", "loop": "i"}, ("j_c",),
        """
for i in T.serial(8):
    for j in T.serial(4):
        for k in T.serial(2):
            with T.block("part"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = 0.0
                Y[vi, vj] = Y[vi, vj] + X[vi, vj * 2 + vk]
    for j_c in T.serial(4):
        with T.block("sum"):
            ui, uj = T.axis.remap("RS", [i, j_c])
            V[uj] = V[uj] + Y[ui, uj]
""",
    ),
    "a reduction is continued for single elements": (
        PARTS, {"block": "sum", "loop": "j"}, (),
        """
for i in T.serial(8):
    for j in T.serial(4):
        for k in T.serial(2):
            with T.block("part"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = 0.0
                Y[vi, vj] = Y[vi, vj] + X[vi, vj * 2 + vk]
        with T.block("sum"):
            ui, uj = T.axis.remap("RS", [i, j])
            V[uj] = V[uj] + Y[ui, uj]
""",
    ),
    "a reduction is continued in tiles": (
        IN_TILES, {"block": "sum", "loop": "i_0"}, ("i_c", "j_c"),
        """
for i_0 in T.serial(3):
    for i_1 in T.serial(3):
        for j in T.serial(8):
            with T.block("part"):
                vi = T.axis.spatial(8, i_0 * 3 + i_1)
                vj = T.axis.spatial(8, j)
                T.where(vi < 8)
                Y[vi, vj] = X[vi, vj]
    for i_c in T.serial(3):
        for j_c in T.serial(8):
            with T.block("sum"):
                ui = T.axis.reduce(8, i_0 * 3 + i_c)
                uj = T.axis.spatial(8, j_c)
                T.where(ui < 8)
                V[uj] = V[uj] + Y[ui, uj]
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
    ("reverse_compute_at.not_proved", WITH_INIT, {"block": "sum", "loop": "i"}),
    ("reverse_compute_at.not_proved", IN_TILES, {"block": "sum", "loop": "i_1"}),
    ("reverse_compute_at.not_proved", INNER_REDUCTION, {"block": "sum", "loop": "i"}),
    ("reverse_compute_at.not_proved", INNER_REDUCTION, {"block": "sum", "loop": "j"}),
    ("reverse_compute_at.binding", FIVE_ROWS, {"block": "second", "loop": "i"}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("reverse_compute_at", arguments), names=names, after=after)


def test_partial_results_of_rfactor_are_added_where_they_are_made(program):
    body = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("RS", [i, j])
            V[vj] = V[vj] + X[vi, vj]
"""
    factored = apply(program(body), Step("rfactor", {"loop": "i"})).module
    moved = apply(factored, Step("reverse_compute_at", {"block": "sum", "loop": "j"}))
    assert moved.names == ()
    for module in (factored, moved.module):
        result, expected = results_of(verify(module)), results_of(program(body))
        for array in expected:
            np.testing.assert_array_equal(result[array], expected[array])


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("reverse_compute_at", arguments)) == code
