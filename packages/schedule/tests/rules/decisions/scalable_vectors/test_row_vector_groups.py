"""Groups of vectors in the rows of a sparse matrix: when they pay, and the versions of the schedule."""

from __future__ import annotations

import pytest
from rule_programs import AXES, CSR, DOT, STORED, module_of, rows_of

from gossamer_machine import Machine
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.decisions.scalable_vectors.row_vector_groups import row_vector_groups
from gossamer_schedule.rules.patterns.row_reduction import row_reduction


def scalable(bits=128):
    return Machine(min_vector_bits=bits, is_scalable=True, fixed_vscale=None)


@pytest.mark.parametrize(
    ("mean", "bits", "pays", "condition"),
    [
        (11.9, 128, False, None),
        (12, 128, True, "T.vscale() <= 1"),
        (64, 128, True, "T.vscale() <= 5"),
        (64, 512, True, "T.vscale() <= 5"),
        (64, 1024, False, None),
        (191, 128, True, "T.vscale() <= 15"),
        (192, 128, True, None),
        (None, 128, True, "nnz >= m * (12 * T.vscale())"),
    ],
)
def test_rows_run_in_groups_if_they_fill_one(mean, bits, pays, condition):
    pattern = row_reduction(module_of(CSR + DOT))
    groups = row_vector_groups(pattern, scalable(bits), mean=mean)
    assert (groups.is_profitable, groups.condition) == (pays, condition)


@pytest.mark.parametrize(
    "program", [STORED, AXES["ell"] + DOT], ids=["stored rows", "a fixed width"]
)
def test_rows_whose_mean_is_not_a_quotient_of_parameters_run_vector_by_vector(program):
    pattern = row_reduction(module_of(program))
    assert row_vector_groups(pattern, scalable(), mean=None).why == "the length of rows is unknown"


@pytest.mark.parametrize(
    ("stats", "versions", "groups"),
    [(None, 1, 1), (rows_of(4), 0, 0), (rows_of(64), 1, 1), (rows_of(600), 0, 1)],
)
def test_there_are_two_versions_if_the_length_of_vectors_decides(stats, versions, groups):
    report = schedule_report(module_of(CSR + DOT), scalable(), stats)
    ops = [step.op for step in report.schedule.loop]
    assert ops.count("loop_version") == versions
    # The rows of a group are unrolled in each version, its vectors where there are groups of these.
    assert ops.count("unroll") == versions + 1 + groups
    assert ops.count("parallel") == versions + 1
    weights = [step.args["weight"] for step in report.schedule.loop if step.op == "parallel"]
    rows = [step.args["loop"] for step in report.schedule.loop if step.op == "parallel"]
    for row, weight in zip(rows, weights, strict=True):
        assert f"[{row} * 4]" in weight
        assert f"16 * {row}" in weight
