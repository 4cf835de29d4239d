"""`sample_perfect_tile`: drawn tiles are legal factors, and programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from program_results import loop_named
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import ScheduleBuilder, apply

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


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("features", [None, 1, 7, 60, 128])
def test_drawn_tiles_are_legal_factors(spmm, require_spmm, features, seed):
    builder = ScheduleBuilder(spmm(features))
    builder.sample_perfect_tile("k", name="t", parts=2, largest=16, seed=seed)
    first, inner = builder.trace[-1].args["decision"]
    assert 1 <= inner <= 16
    assert (first is None) if features is None else (first * inner == features)
    builder.split("k", factors=("$t_0", "$t_1"))
    if features in (None, 7):
        require_spmm(builder.module, 7)


def test_tiles_of_scalable_loops_divide_their_constant_part(spmm):
    builder = ScheduleBuilder(spmm()).split("k", factors=(None, "12 * T.vscale()"))
    builder.sample_perfect_tile("k_1", name="t", parts=2, largest=5, seed=2)
    first, inner = builder.trace[-1].args["decision"]
    assert (first, 12 % inner) == (None, 0)
    builder.split("k_1", factors=("$t_0", "$t_1"))


def test_a_decision_that_does_not_fit_a_loop_leaves_the_first_factor_open(spmm):
    builder = ScheduleBuilder(spmm(8)).sample_perfect_tile("k", name="t", parts=2, decision=(2, 4))
    assert builder.split("k", factors=("$t_0", "$t_1")).trace[0].args["decision"] == (2, 4)
    other = ScheduleBuilder(spmm(10)).replay(builder.trace)
    assert loop_named(other.module, "k_1").extent == loop_named(builder.module, "k_1").extent
