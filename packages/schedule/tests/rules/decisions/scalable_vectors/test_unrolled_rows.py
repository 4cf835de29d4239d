"""Rows of scalable vectors in unrolled groups."""

from __future__ import annotations

import pytest
from rule_programs import AXES, CSR, DOT, STORED, module_of, rows_of

from gossamer_machine import Machine
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.decisions.scalable_vectors.unrolled_rows import may_unroll_rows
from gossamer_schedule.rules.patterns.row_reduction import row_reduction


def ops_of(program, *, stats=None, is_scalable=True):
    vscale = None if is_scalable else 1
    machine = Machine(min_vector_bits=128, is_scalable=is_scalable, fixed_vscale=vscale)
    return [step.op for step in schedule_report(module_of(program), machine, stats).schedule.loop]


@pytest.mark.parametrize(
    ("program", "may"),
    [(CSR, True), (STORED, False), (AXES["ell"], False)],
    ids=["csr", "dcsr", "ell"],
)
def test_rows_are_unrolled_if_their_number_is_a_parameter(program, may):
    text = program if program is STORED else program + DOT
    assert may_unroll_rows(row_reduction(module_of(text))) is may
    assert ("loop_partition" in ops_of(text)) is may


def test_rows_of_fixed_vectors_are_not_unrolled():
    assert "loop_partition" not in ops_of(CSR + DOT, stats=rows_of(64), is_scalable=False)


def test_only_the_rows_of_whole_groups_run_in_parallel():
    report = schedule_report(
        module_of(CSR + DOT),
        Machine(min_vector_bits=128, is_scalable=True, fixed_vscale=None),
        rows_of(4),
    )
    (partition,) = (step for step in report.schedule.loop if step.op == "loop_partition")
    (parallel,) = (step for step in report.schedule.loop if step.op == "parallel")
    assert partition.args["points"] == ("m // 4 * 4",)
    assert parallel.args["loop"] == "i_0_0"
    assert "4 rows at a time" in [decision.what for decision in report.decisions]
