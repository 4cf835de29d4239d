"""All points of a space of schedules: what a rule returns for each combination of its choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gossamer_ir.interchange.records import SchedulePoint, ScheduleReport, ScheduleSpace


def enumerate_schedules(
    report_at: Callable[[SchedulePoint], ScheduleReport | None],
) -> ScheduleSpace | None:
    """Return the reports of a function at all points of its choices; None if it returns none for the prior.

    A later choice may depend on earlier ones: it may have other values, or not be there. The values of the
    last choice change first, and each choice begins with its prior. Points for which the function returns
    None are left out.

    >>> from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
    >>> def report_at(point):
    ...     trace = TraceBuilder(point=point)
    ...     if trace.choose("order", "rows", "tiles") == "tiles":
    ...         trace.choose("width", 16, 8)
    ...     return ScheduleReport("mine", "a sum", choices=trace.choices)
    >>> [list(report.point.values()) for report in enumerate_schedules(report_at).reports]
    [['rows'], ['tiles', 16], ['tiles', 8]]
    """
    prior = report_at({})
    if prior is None:
        return None
    return ScheduleSpace(tuple(_reports(report_at, prior, fixed=0)))


def _reports(
    report_at: Callable[[SchedulePoint], ScheduleReport | None],
    report: ScheduleReport,
    *,
    fixed: int,
) -> Iterator[ScheduleReport]:
    """Yield the reports at all points whose first choices are those of a report, `fixed` in number. The other
    choices of this report are at their priors."""
    if fixed == len(report.choices):
        yield report
        return
    choice = report.choices[fixed]
    earlier = {choice.name: choice.value for choice in report.choices[:fixed]}
    for value in choice.values:
        # The report is that of the first value, which need not be made again.
        at_value = report if value == choice.value else report_at({**earlier, choice.name: value})
        if at_value is not None:
            yield from _reports(report_at, at_value, fixed=fixed + 1)
