"""`fuse`: fused loops visit the same elements, and programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from program_results import outcome
from refused import code_of, reason_of
from refused_programs import FOLLOWING, LATE, PARALLEL, TRIANGLE, TWO_COPIES

from gossamer_ir.interchange.records import Step
from gossamer_schedule import ScheduleBuilder, apply, get_loops
from gossamer_testkit import examples

MEETING = """
for i, j in T.grid(8, n):
    with T.block("meet"):
        vi, vj = T.axis.remap("RR", [i, j])
        with T.init():
            V[vi] = 0.0
        V[vi] = V[vi] + X[vi, vj]
"""
MAYBE_EMPTY = SUM.replace("for j in T.serial(8)", "for j in T.serial(n)")
NEGATIVE = COPY.replace("T.serial(8)", "T.serial(n - 3)")
REFUSED = [
    ("fuse.loops", COPY, {"loops": ("i",)}),
    ("fuse.not_nested", TWO_COPIES, {"loops": ("i", "j")}),
    ("fuse.not_nested", COPY, {"loops": ("j", "i")}),
    ("fuse.start", LATE, {"loops": ("i", "j")}),
    ("fuse.kind", PARALLEL, {"loops": ("i", "j")}),
    ("fuse.dependence", TRIANGLE, {"loops": ("i", "j")}),
    ("fuse.not_proved", MAYBE_EMPTY, {"loops": ("i", "j")}),
    ("fuse.not_proved", MEETING, {"loops": ("i", "j")}),
    ("fuse.not_proved", NEGATIVE, {"loops": ("i", "j")}),
    ("fuse.not_proved", FOLLOWING, {"loops": ("i", "j")}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("fuse", arguments)) == code


@pytest.mark.parametrize("features", [0, 1, 7])
def test_fused_loops_visit_the_same_elements_in_parallel(require_spmm, features):
    builder = ScheduleBuilder(examples.SPMM).reorder("i", "k", "j").fuse("i", "k")
    require_spmm(builder.module, features)
    require_spmm(builder.parallel("i_k").module, features)


def test_three_loops_are_fused_and_split_again(program):
    body = """
for a in T.serial(2):
    for b in T.serial(3):
        for c in T.serial(5):
            with T.block("copy"):
                va, vb, vc = T.axis.remap("SSS", [a, b, c])
                V[va * 15 + vb * 5 + vc] = W[va * 15 + vb * 5 + vc] + X[va, vb]
"""
    module = program(body)
    builder = ScheduleBuilder(module).fuse("a", "b", "c").split("a_b_c", factors=(None, 4))
    assert get_loops(builder.module) == ("a_b_c_0", "a_b_c_1")
    assert outcome(builder.module) == outcome(module)


def test_a_fused_loop_that_swaps_its_parts_is_no_parallel_loop(program):
    module = program("""
for i in T.serial(4):
    for j in T.serial(4):
        with T.block("swap"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = X[vj, vi]
""")
    builder = ScheduleBuilder(module).fuse("i", "j")
    assert code_of(builder.parallel, "i_j") == "schedule.parallel.not_proved"


@pytest.mark.parametrize("features", [0, 1, 7])
def test_a_reduction_that_has_terms_is_fused_with_what_it_is_for(spmm, require_spmm, features):
    builder = ScheduleBuilder(spmm(features)).decompose_reduction("csrmm", loop="j")
    builder.fuse("j", "k")
    require_spmm(builder.module, features)


def test_an_init_is_not_lost_where_the_reduction_may_be_empty():
    dense = ScheduleBuilder(examples.MATMUL).reorder("i", "l", "j")
    assert code_of(dense.fuse, "l", "j") == "schedule.fuse.not_proved"
    assert dense.decompose_reduction("matmul", loop="l").fuse("l", "j").names == ("l_j",)
