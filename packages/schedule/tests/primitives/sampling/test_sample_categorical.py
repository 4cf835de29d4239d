"""`sample_categorical`: seeds, replays, and programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import code_of, reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import ScheduleBuilder, apply, replay
from gossamer_testkit import examples

REFUSED = [
    ("sample_categorical.name", COPY, {"name": "a b", "candidates": (1,)}),
    ("sample_categorical.candidates", COPY, {"name": "a", "candidates": ()}),
    ("sample_categorical.candidates", COPY, {"name": "a", "candidates": (1, 2), "weights": (0, 0)}),
    ("sample_categorical.decision", COPY, {"name": "a", "candidates": (1, 2), "decision": 2}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("sample_categorical", arguments)) == code


def test_a_replay_repeats_what_was_drawn():
    builder = ScheduleBuilder(examples.SPMM)
    builder.sample_perfect_tile("k", name="t", parts=3, largest=8, seed=5)
    builder.split("k", factors=("$t_0", "$t_1", "$t_2"))
    builder.sample_categorical("grain", candidates=(16, 64, 256), weights=(1, 2, 1), seed=5)
    builder.parallel("i", grain="$grain")
    assert replay(examples.SPMM, builder.trace) == builder.module
    again = ScheduleBuilder.from_json(examples.SPMM, builder.to_json())
    assert (again.module, again.trace) == (builder.module, builder.trace)


def test_different_seeds_draw_different_values():
    drawn = set()
    for seed in range(30):
        builder = ScheduleBuilder(examples.SCALE)
        builder.sample_categorical("t", candidates=(2, 4, 8), weights=(1, 0, 1), seed=seed)
        drawn.add(builder.trace[0].args["decision"])
    assert drawn == {0, 2}


def test_a_value_that_nobody_drew_is_refused():
    builder = ScheduleBuilder(examples.SCALE)
    assert code_of(builder.split, "i", factors=(None, "$t")) == "schedule.sample.no_value"
