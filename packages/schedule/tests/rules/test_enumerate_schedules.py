"""Spaces of schedules: the order of their points, and choices that depend on others."""

from __future__ import annotations

import pytest
from rule_programs import AXES, DOT, PRODUCT, TARGET, module_of

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import RuleChoice, ScheduleReport, ScheduleSpace, Stats
from gossamer_ir.interchange.serialization import dumps_record, loads_record
from gossamer_schedule.plugin_api import TraceBuilder, apply_rule, enumerate_schedules
from gossamer_schedule.rules import default_space, schedule_report
from gossamer_testkit.examples import SCALE

SPMM = module_of(AXES["csr"] + PRODUCT, f=64)
LONG_ROWS = Stats(rows=1 << 16, columns=1 << 16, nnz=80 << 16, longest_row=500, empty_rows=0)


def report_at(point):
    """A rule with a choice that is only there for one value of another, and with a point that is left out."""
    trace = TraceBuilder(point=point)
    order = trace.choose("order", "rows", "tiles", "columns")
    width = trace.choose("width", 16, 8) if order != "rows" else None
    if (order, width) == ("columns", 8):
        return None
    trace.record.unroll(f"{order}_{width}")
    trace.decide("unrolled", "it is short")
    return ScheduleReport("mine", "a sum", trace.decisions, choices=trace.choices)


def test_points_are_in_the_order_of_the_values():
    space = enumerate_schedules(report_at)
    assert [tuple(report.point.values()) for report in space.reports] == [
        ("rows",),
        ("tiles", 16),
        ("tiles", 8),
        ("columns", 16),
    ]
    assert space.prior.choices == (RuleChoice("order", "rows", ("rows", "tiles", "columns")),)
    assert space == enumerate_schedules(report_at)
    assert loads_record(dumps_record(space), ScheduleSpace) == space


def test_each_point_has_its_own_schedule():
    for report in enumerate_schedules(report_at).reports:
        (step,) = report.schedule.loop
        assert step.args["loop"] == f"{report.point['order']}_{report.point.get('width')}"


def test_without_a_prior_there_is_no_space():
    assert enumerate_schedules(lambda point: report_at(point) if point else None) is None


def test_a_point_may_leave_out_choices():
    space = enumerate_schedules(report_at)
    assert space.at({}) == space.prior
    assert space.at({"order": "tiles"}).point == {"order": "tiles", "width": 16}
    with pytest.raises(ArgumentError, match=r"no point with \{'width': 4\}") as caught:
        space.at({"width": 4})
    assert caught.value.code == "schedule.point"


def test_equal_values_are_one_and_one_value_is_no_choice():
    trace = TraceBuilder()
    assert [trace.choose("some", 2, 1, 2), trace.choose("one", 3, 3)] == [2, 3]
    assert trace.choices == (RuleChoice("some", 2, (2, 1)),)


@pytest.mark.parametrize("stats", [None, LONG_ROWS])
def test_the_first_schedule_is_the_one_that_the_rules_take(stats):
    space = default_space(SPMM, TARGET, stats)
    assert space.prior == schedule_report(SPMM, TARGET, stats)
    assert len(space.reports) > 1
    assert all(report.rule == "row_spmm" for report in space.reports)


def test_a_program_without_choices_has_one_schedule():
    for program in (SCALE, module_of(AXES["csr"] + DOT)):
        assert default_space(program, TARGET).reports == (schedule_report(program, TARGET),)


def test_a_rule_is_applied_at_a_point():
    space = default_space(SPMM, TARGET, LONG_ROWS)
    for report in space.reports:
        assert apply_rule("row_spmm", SPMM, TARGET, LONG_ROWS, point=report.point) == report


WRONG = [
    ({"product.form": "diagonals"}, "has 'diagonals' for the choice 'product.form'; expected"),
    ({"product.colour": 1}, "does not have the choice 'product.colour'"),
]


@pytest.mark.parametrize(("point", "message"), WRONG)
def test_a_point_that_a_rule_does_not_have_is_refused(point, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        apply_rule("row_spmm", SPMM, TARGET, LONG_ROWS, point=point)
    assert caught.value.code == "schedule.choice"
