"""`unsafe_parallel`, `unsafe_reorder` and `unsafe_vectorize` leave marks in module, text and trace."""

from __future__ import annotations

import pytest
from refused import code_of

from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import diagnostics
from gossamer_schedule import ScheduleBuilder, replay
from gossamer_testkit import examples

UNSAFE_STEPS = {
    "unsafe_parallel": (("i",), "parallel(i)"),
    "unsafe_reorder": (("k", "j"), "reorder(k, j)"),
}


@pytest.mark.parametrize("op", UNSAFE_STEPS)
def test_an_unsafe_step_leaves_a_mark_in_module_text_and_trace(op, require_spmm):
    names, mark = UNSAFE_STEPS[op]
    builder = getattr(ScheduleBuilder(examples.SPMM), op)(*names)
    assert ("unsafe", mark) in builder.module.functions[0].annotations
    assert f'"unsafe": "{mark}"' in print_module(builder.module)
    assert builder.trace[-1].op == op
    assert parse_module(print_module(builder.module)) == builder.module
    assert replay(examples.SPMM, builder.trace) == builder.module
    require_spmm(builder.module, 3)


def test_marks_of_several_unsafe_steps_are_kept_in_order(program):
    module = program("""
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("scatter"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[T.int64(P[vi])] = X[vi, vj]
""")
    builder = ScheduleBuilder(module)
    assert code_of(builder.parallel, "i") == "schedule.parallel.not_proved"
    assert code_of(builder.reorder, "j", "i") == "schedule.reorder.not_proved"
    builder.unsafe_reorder("j", "i").unsafe_vectorize("i").unsafe_parallel("j")
    marks = dict(builder.module.functions[0].annotations)
    assert marks == {"unsafe": "reorder(j, i); vectorize(i); parallel(j)"}
    assert diagnostics(builder.module) == ()
