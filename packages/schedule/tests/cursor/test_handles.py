"""Handles follow loops and blocks through the steps; names that may mean two loops are warned about."""

from __future__ import annotations

import copy
import pickle

import pytest
from refused import code_of

from gossamer_ir.errors import ScheduleError
from gossamer_ir.script import parse_module
from gossamer_schedule import AmbiguousNameWarning, ScheduleBuilder
from gossamer_schedule.cursor.handles import forwarded_names
from gossamer_testkit import examples


def test_handles_follow_a_loop_that_is_split_twice():
    builder = ScheduleBuilder(examples.SPMM)
    _, _, k = builder.get_loops("csrmm")
    outer, inner = builder.split(k, factors=(None, 8)).names
    builder.split(inner, factors=(2, 4)).parallel("i")
    assert forwarded_names(k, builder._applied.program, builder._applied.results) == (
        "k_0",
        "k_1_0",
        "k_1_1",
    )
    assert builder.unroll("k_1_0").reorder("i", outer, "j").trace[-1].args["loops"] == (
        *("i", "k_0", "j"),
    )


def test_a_handle_of_several_loops_is_refused_and_they_are_listed():
    builder = ScheduleBuilder(examples.SPMM)
    (*_, k) = builder.get_loops()
    builder.split(k, factors=(None, 8))
    assert code_of(builder.unroll, k) == "schedule.handle.ambiguous"
    with pytest.raises(ScheduleError, match="'k_0', 'k_1'"):
        builder.unroll(k)


def test_a_handle_of_what_is_gone_is_refused(spmm):
    builder = ScheduleBuilder(spmm(8)).cache_write("csrmm", buffer="C", scope="local")
    row = builder.get_loops("csrmm_C_local")[0]
    builder.reverse_compute_at("csrmm_C_local", loop="i")
    assert code_of(builder.unroll, row) == "schedule.handle.invalidated"


def test_a_name_that_is_used_anew_is_not_what_the_handle_stood_for(spmm):
    builder = ScheduleBuilder(spmm(8)).split("k", factors=(2, 4))
    first = builder.names[0]
    builder.split("k_0", factors=(1, 2)).split("i", factors=(None, 3))
    assert forwarded_names(first, builder._applied.program, builder._applied.results) == (
        "k_0_0",
        "k_0_1",
    )


def test_a_handle_is_followed_in_a_copy_too():
    builder = ScheduleBuilder(examples.SPMM)
    (*_, k) = builder.get_loops()
    inner = builder.split(k, factors=(None, 8)).names[1]
    other = builder.copy().split(inner, factors=(2, 4))
    assert other.unroll(other.names[0]).trace[-1].args == {"loop": "k_1_0"}
    assert builder.unroll(inner).trace[-1].args == {"loop": "k_1"}
    assert code_of(builder.unroll, other.names[0]) == "schedule.handle.foreign"


def test_a_handle_of_a_step_that_was_undone_is_refused():
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 8))
    inner = builder.names[1]
    builder.undo().split("k", factors=(2, None, 8))
    assert builder.names[1] == inner
    assert code_of(builder.unroll, inner) == "schedule.handle.foreign"


def test_a_handle_of_another_program_is_refused():
    (i, *_) = ScheduleBuilder(examples.ROW_SUM).get_loops()
    assert code_of(ScheduleBuilder(examples.SPMM).parallel, i) == "schedule.handle.foreign"


def test_a_handle_is_copied_as_text():
    (i, *_) = ScheduleBuilder(examples.SPMM).get_loops()
    assert pickle.loads(pickle.dumps(i)) == copy.deepcopy(i) == "i"


TWO_NESTS = """
@T.prim_func
def two(x: T.handle, y: T.handle, m: T.int64) -> None:
    X = T.match_buffer(x, (m, 64), "float32")
    Y = T.match_buffer(y, (m, 64), "float32")
    for i in T.serial(m):
        for k in T.serial(64):
            with T.block("double"):
                vi, vk = T.axis.remap("SS", [i, k])
                Y[vi, vk] = X[vi, vk] * 2.0
    for i_1 in T.serial(m):
        for k_1 in T.serial(64):
            with T.block("add"):
                wi, wk = T.axis.remap("SS", [i_1, k_1])
                Y[wi, wk] = Y[wi, wk] + 1.0
"""


def test_a_text_that_may_mean_two_loops_is_warned_about():
    builder = ScheduleBuilder(parse_module(TWO_NESTS)).split("k", factors=(None, 8))
    assert builder.names == ("k_0", "k_1_1")
    with pytest.warns(
        AmbiguousNameWarning, match=r"'k_1' is .* before split made 'k_1_1'"
    ) as caught:
        builder.vectorize("k_1")
    assert caught[0].filename == __file__
    assert builder.trace[-1].args == {"loop": "k_1"}


def test_a_handle_and_a_trace_mean_one_loop():
    program = parse_module(TWO_NESTS)
    builder = ScheduleBuilder(program).split("k", factors=(None, 8))
    _, k = builder.get_loops("add")
    builder.split(k, factors=(None, 4)).vectorize(builder.names[1])
    assert builder.trace[-1].args == {"loop": "k_1_1_1"}
    assert ScheduleBuilder.from_json(program, builder.to_json()).module == builder.module


def test_a_loop_that_is_gone_is_not_warned_about():
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 8))
    builder.split("k_1", factors=(None, 4)).unroll("k_1_1")
    assert builder.trace[-1].args == {"loop": "k_1_1"}
