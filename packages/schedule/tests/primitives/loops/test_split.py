"""`split`: programs before and after, and programs that it refuses."""
# ruff: noqa: E501  (scripts have no line breaks inside an expression)

from __future__ import annotations

import pytest
from before_and_after import require_change
from nest_programs import COPY, RAGGED
from refused import reason_of
from refused_programs import LATE, PARALLEL, SYMBOLIC

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

INIT_BY_LOOP = """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i])):
        with T.block("last"):
            vj = T.axis.reduce(8, j)
            with T.init():
                V[i] = 0
            V[i] = vj
"""
BARE = """
for i in T.serial(7):
    W[i] = V[i]
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
"""
BEFORE_AND_AFTER = {
    "exact factors need no predicate": (
        COPY, {"loop": "j", "factors": (None, 4)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial(2):
        for j_1 in T.serial(4):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 4 + j_1)
                Y[vi, vj] = X[vi, vj]
""",
    ),
    "all factors given": (
        COPY, {"loop": "j", "factors": (3, 3)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(3):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * 3 + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
""",
    ),
    "extents that load are guarded": (
        RAGGED, {"loop": "i", "factors": (None, 3)}, ("i_0", "i_1"),
        """
for i_0 in T.serial(3):
    for i_1 in T.serial(3):
        for j in T.serial(T.if_then_else(i_0 * 3 + i_1 < 8, T.int64(P[i_0 * 3 + i_1 + 1]) - T.int64(P[i_0 * 3 + i_1]), 0)):
            with T.block("scale"):
                vi = T.axis.spatial(8, i_0 * 3 + i_1)
                vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j)
                T.where(vi < 8)
                V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
""",
    ),
    "a ragged loop is bounded by its domain": (
        RAGGED, {"loop": "j", "factors": (None, 4)}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial((T.int64(P[i + 1]) - T.int64(P[i]) + 3) // 4):
        for j_1 in T.serial(4):
            with T.block("scale"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j_0 * 4 + j_1)
                T.where(vj < T.int64(P[vi + 1]) - T.int64(P[vi]))
                V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
""",
    ),
    "statements outside of blocks": (
        BARE, {"loop": "i", "factors": (None, 2)}, ("i_0", "i_1"),
        """
for i_0 in T.serial(4):
    for i_1 in T.serial(2):
        if i_0 * 2 + i_1 < 7:
            W[i_0 * 2 + i_1] = V[i_0 * 2 + i_1]
            for j in T.serial(8):
                with T.block("copy"):
                    vi = T.axis.spatial(7, i_0 * 2 + i_1)
                    vj = T.axis.spatial(8, j)
                    T.where(vi < 7)
                    Y[vi, vj] = X[vi, vj]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("split.factors", COPY, {"loop": "j", "factors": (None, None)}),
    ("split.factors", COPY, {"loop": "j", "factors": (None, 0)}),
    ("split.factors", COPY, {"loop": "j", "factors": (None, "n")}),
    ("split.factors", COPY, {"loop": "j", "factors": ()}),
    ("split.factors", COPY, {"loop": "j", "factors": (2, 3)}),
    ("split.not_proved", SYMBOLIC, {"loop": "i", "factors": (2, 3)}),
    ("split.not_proved", INIT_BY_LOOP, {"loop": "j", "factors": (2, None, 2)}),
    ("split.start", LATE, {"loop": "i", "factors": (None, 3)}),
    ("split.kind", PARALLEL, {"loop": "i", "factors": (None, 3)}),
    ("split.text", COPY, {"loop": "i", "factors": (None, "width")}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("split", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("split", arguments)) == code
