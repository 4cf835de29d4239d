"""`bind`: bound loops compute the same, and programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from program_results import loop_named
from refused import code_of, reason_of
from refused_programs import LAST_WINS, LATE, SCATTER, SKEWED, SYMBOLIC

from gossamer_ir.interchange.records import Step
from gossamer_ir.script import print_module
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples

BLOCKS = """
for i in T.serial(8):
    for x in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("four"):
            vi, vx = T.axis.remap("SS", [i, x])
            Y[vi, vx] = X[vi, vx]
    for j in T.serial(8):
        with T.block("eight"):
            wi, wj = T.axis.remap("SS", [i, j])
            Z[wi, wj] = X[wi, wj]
"""
IN_BLOCKS = BLOCKS.replace("i in T.serial(8)", 'i in T.thread_binding(8, thread="blockIdx.x")')
TOTAL = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("total"):
            vi, vj = T.axis.remap("RR", [i, j])
            V[0] = V[0] + X[vi, vj]
"""
PRODUCTS = SCATTER.replace("= W[vi]", "= V[T.int64(P[vi])] * W[vi]")
SUMS = SCATTER.replace("= W[vi]", "= V[T.int64(P[vi])] + W[vi]")
REFUSED = [
    ("bind.thread", COPY, {"loop": "i", "thread": "threadIdx.w"}),
    ("bind.start", LATE, {"loop": "i", "thread": "blockIdx.x"}),
    ("bind.duplicate", BLOCKS, {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.extent", IN_BLOCKS, {"loop": "j", "thread": "threadIdx.x"}),
    ("bind.extent", SYMBOLIC, {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.race", SUM, {"loop": "j", "thread": "blockIdx.x"}),
    ("bind.race", SKEWED, {"loop": "i", "thread": "blockIdx.x"}),
    ("bind.not_proved", SCATTER, {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.not_reducer", LAST_WINS, {"loop": "j", "thread": "threadIdx.x"}),
    ("bind.not_atomic", PRODUCTS, {"loop": "i", "thread": "blockIdx.x", "accumulate": "atomic"}),
    ("bind.no_reduction", SCATTER, {"loop": "i", "thread": "blockIdx.x", "accumulate": "atomic"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("bind", arguments)) == code


@pytest.mark.parametrize("features", [1, 7])
def test_bound_loops_compute_the_same(require_spmm, features):
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 4))
    builder.reorder("i", "k_0", "k_1", "j")
    builder.bind("i", thread="blockIdx.x").bind("k_1", thread="threadIdx.x")
    require_spmm(builder.module, features)
    assert loop_named(builder.module, "k_1").thread == "threadIdx.x"
    assert code_of(builder.bind, "k_0", thread="threadIdx.x") == "schedule.bind.duplicate"


def test_a_thread_loop_of_varied_extent_is_refused():
    """The lengths of rows differ between the iterations over rows."""
    builder = ScheduleBuilder(examples.SPMM).bind("i", thread="blockIdx.x")
    assert code_of(builder.bind, "j", thread="blockIdx.y") == "schedule.bind.extent"


def test_threads_of_a_block_combine_the_terms_of_a_reduction(program, require_spmv):
    builder = ScheduleBuilder(examples.SPMV).decompose_reduction("csrmv", loop="j")
    builder.split("j", factors=(None, 4)).bind("j_1", thread="threadIdx.x")
    assert "reassociates" in print_module(builder.module)
    require_spmv(builder.module)


def test_a_thread_may_add_up_several_terms_first(program, require_spmv):
    builder = ScheduleBuilder(examples.SPMV).decompose_reduction("csrmv", loop="j")
    builder.split("j", factors=(None, 4)).reorder("j_1", "j_0").bind("j_1", thread="threadIdx.x")
    assert loop_named(builder.module, "j_1").thread == "threadIdx.x"
    assert "reassociates" in print_module(builder.module)
    require_spmv(builder.module)


@pytest.mark.parametrize("order", [("i", "j"), ("j", "i")])
def test_threads_of_two_axes_combine_terms(order, program):
    builder = ScheduleBuilder(program(TOTAL))
    for loop in order:
        builder.bind(loop, thread="threadIdx.y" if loop == "i" else "threadIdx.x")
    assert print_module(builder.module).count('thread="threadIdx') == 2


@pytest.mark.parametrize(
    ("code", "body"),
    [
        # Each iteration of the loop inside has another element, whose parts a thread would have to keep.
        ("bind.not_proved", TOTAL.replace("V[0]", "V[vj]").replace('"RR"', '"RS"')),
        ("bind.not_reducer", TOTAL.replace("V[0] + X", "X")),
        ("bind.not_reducer", TOTAL.replace("for j in T.serial(8)", "for j in T.vectorized(8)")),
    ],
)
def test_terms_in_loops_that_a_thread_cannot_keep_are_refused(code, body, program):
    step = Step("bind", {"loop": "i", "thread": "threadIdx.x"})
    assert reason_of(apply, program(body), step) == code


@pytest.mark.parametrize("thread", ["blockIdx.x", "threadIdx.x"])
def test_elements_that_iterations_share_are_accumulated_atomically(program, thread):
    module = ScheduleBuilder(program(SUMS)).bind("i", thread=thread, accumulate="atomic").module
    assert loop_named(module, "i").annotations == (("atomic", "V"),)
    assert reason_of(apply, program(SUMS), Step("bind", {"loop": "i", "thread": thread})) == (
        "bind.not_proved"
    )


def test_elements_that_the_threads_of_another_loop_may_have_are_atomic_too(program):
    distinct = SUMS.replace("T.int64(P[vi])", "vi")
    builder = ScheduleBuilder(program(distinct)).bind("i", thread="blockIdx.x", accumulate="atomic")
    assert loop_named(builder.module, "i").annotations == (("atomic", "V"),)


def test_a_loop_that_accumulates_into_nothing_has_no_annotation(program):
    builder = ScheduleBuilder(program(COPY)).bind("i", thread="blockIdx.x", accumulate="atomic")
    assert loop_named(builder.module, "i").annotations == ()
