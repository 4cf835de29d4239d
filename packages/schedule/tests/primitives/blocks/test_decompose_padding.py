"""`decompose_padding`: the padding and the interior make the whole."""

from __future__ import annotations

from itertools import product

import pytest
from nest_programs import COPY
from program_results import outcome, same
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import InterpreterError
from gossamer_schedule import ScheduleBuilder, apply, get_loops
from gossamer_testkit.show import body_text

FRAME = """
for i in T.serial({rows}):
    for j in T.serial({columns}):
        with T.block("pad"):
            vi = T.axis.spatial({rows}, i)
            vj = T.axis.spatial({columns}, j)
            Y[vi, vj] = T.if_then_else({inside}, X[vi - 1, vj], {padding})
"""
INSIDE = (
    "vi >= 1", "vi >= 1 and vj < n", "vi > 0 and vi <= 5 and vj >= 2 and vj < 6", "1 <= vi and n > vj",
    "vi >= 1 and vi + vj < 7", "vi >= n and vi >= 1", "vi >= 1 and vj < vi", "vi >= 1 and n < 4",
    "vi >= 1 and vj < T.int64(P[3])",
)  # fmt: skip
EXTREME = (-(2**63), -(2**62), -1, 0, 1, 3, 7, 8, 2**62, 2**63 - 1)


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("loop", ["i", "j"])
@pytest.mark.parametrize("size", ["8", "T.int64(P[6])", "0"])
def test_padding_and_interior_make_the_whole(program, inside, loop, size):
    text = FRAME.format(rows="8", columns=size, inside=inside, padding="T.float32(vi * 10 + n)")
    module = program(text)
    builder = ScheduleBuilder(module).decompose_padding("pad", loop=loop)
    assert builder.names[0] == "pad_pad"
    assert "if_then_else" not in body_text(builder.module)
    for n in EXTREME:
        assert same(builder, module, n=n)


def test_a_loop_over_the_interior_is_as_short_as_that(program):
    text = FRAME.format(rows="8", columns="8", padding="0.0", inside=INSIDE[2])
    module = ScheduleBuilder(program(text)).decompose_padding("pad", loop="i").module
    assert get_loops(module, "pad") == ("i", "j")
    assert "for i in T.serial(5):\n    for j in T.serial(4):" in body_text(module)
    assert "T.where" not in body_text(module)


BESIDE = (
    FRAME
    + """
        with T.block("other"):
            ui, uj = T.axis.remap("SS", [i, j])
            Z[ui, uj] = Z[ui, uj] + 1.0
"""
)


def test_statements_beside_the_block_run_as_often_as_before(program):
    text = BESIDE.format(rows="8", columns="4", padding="2.0", inside="vi >= 1 and vj >= 1")
    module = program(text)
    builder = ScheduleBuilder(module).decompose_padding("pad", loop="i")
    assert "T.where" in body_text(builder.module)
    assert same(builder, module)


def test_conditions_and_loops_around_are_kept(program):
    text = (
        FRAME.format(rows="8", columns="i + 1", padding="2.0", inside="vi >= 1 and vj >= 1")
        .replace("        with T.block", "        if i != n:\n          with T.block")
        .replace("        vi =", "          vi =")
        .replace("        vj =", "          vj =")
        .replace("        Y[", "          Y[")
        .replace("T.axis.spatial(i + 1, j)", "T.axis.spatial(vi + 1, j)")
    )
    module = program(text)
    for loop, n in product("ij", (0, 3, 9)):
        builder = ScheduleBuilder(module).decompose_padding("pad", loop=loop)
        assert same(builder, module, n=n)


def test_points_that_meet_are_not_taken_apart(program):
    text = FRAME.format(rows="8", columns="8", padding="0.0", inside="vi >= 1")
    meeting = program(text.replace("Y[vi, vj]", "V[vi]"))
    code = reason_of(ScheduleBuilder(meeting).decompose_padding, "pad", loop="i")
    assert code == "decompose_padding.not_proved"
    scattered = program(text.replace("Y[vi, vj]", "Y[T.int64(P[vi]), vj]"))
    code = reason_of(ScheduleBuilder(scattered).decompose_padding, "pad", loop="i")
    assert code == "decompose_padding.not_proved"


def test_a_select_reads_only_the_interior(program):
    text = FRAME.format(rows="8", columns="8", padding="0.0", inside="vj < 4")
    module = program(text.replace("T.if_then_else", "T.Select").replace("vi - 1", "vi"))
    assert same(ScheduleBuilder(module).decompose_padding("pad", loop="i"), module)


def test_what_stops_a_select_outside_the_interior_is_not_computed(program):
    """As documented: the program reads the row before the first, although it is not selected."""
    text = FRAME.format(rows="8", columns="8", padding="0.0", inside="vi >= 1")
    module = program(text.replace("T.if_then_else", "T.Select"))
    with pytest.raises(InterpreterError, match="out of bounds"):
        outcome(module)
    chosen = program(text)
    assert same(ScheduleBuilder(module).decompose_padding("pad", loop="i"), chosen)


def test_what_the_condition_reads_exists_under_the_predicate_of_the_block(program):
    text = """
for i_0 in T.serial(3):
    for i_1 in T.serial(4):
        with T.block("pad"):
            vi = T.axis.spatial(8, i_0 * 4 + i_1)
            T.where(vi < 8)
            V[vi] = T.if_then_else(X[vi, 1] >= 0.0, X[vi, 0], 0.0)
"""
    module = program(text)
    assert same(ScheduleBuilder(module).decompose_padding("pad", loop="i_0"), module)


OTHER = """
for h in T.serial(8):
    with T.block("other"):
        vh = T.axis.spatial(8, h)
        V[vh] = 0.0
"""
PADDING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.if_then_else(vj > 0, X[vi, vj - 1], 0.0)
"""
PADDING_AND_SHRINKING = PADDING.replace("j in T.serial(8)", "j in T.serial(T.int64(P[0]))").replace(
    "    for j", "    P[0] = P[0] - 1\n    for j"
)
REFUSED = [
    ("decompose_padding.pattern", COPY, {"block": "copy", "loop": "i"}),
    ("decompose_padding.not_enclosing", PADDING + OTHER, {"block": "pad", "loop": "h"}),
    (
        "decompose_padding.other_access",
        PADDING.replace("X[vi", "Y[vi"),
        {"block": "pad", "loop": "i"},
    ),
    (
        "decompose_padding.not_proved",
        PADDING.replace("Y[vi, vj]", "V[vi + vj]"),
        {"block": "pad", "loop": "i"},
    ),
    ("decompose_padding.not_proved", PADDING_AND_SHRINKING, {"block": "pad", "loop": "i"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("decompose_padding", arguments)) == code
