"""The default schedule of a program: that of the first rule whose pattern matches."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import (
    Schedule,
    SchedulePoint,
    ScheduleReport,
    ScheduleSpace,
    Stats,
)
from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.iterations import several_iterations
from gossamer_schedule.rules.canonical.forms import ProgramForm, forms_of
from gossamer_schedule.rules.first_match import FoundMatch, first_match
from gossamer_schedule.rules.ordered_rules import (
    COMBINING_RULES,
    GRID_ITERATION_RULES,
    GRID_RULES,
    ITERATION_RULES,
    RULES,
    SIBLING_RULES,
    Rules,
)
from gossamer_schedule.rules.schedule_rule import RuleContext
from gossamer_support.message_texts import in_quotes
from gossamer_support.typed_calls import typed


@typed
def schedule_report(module: Module, machine: Machine, stats: Stats | None = None) -> ScheduleReport:
    """Return the schedule of the first rule whose pattern matches, with the reason of each decision.

    The report has no decisions if no pattern matches, or if the module is of a later stage than coordinate.
    Patterns are matched against the program without fused axes, first in its own order of axes, then with the
    axes of the sparse tree first.

    >>> from gossamer_ir import parse_module
    >>> from gossamer_machine import Machine
    >>> program = parse_module('''
    ... @T.prim_func
    ... def sums(a: T.handle, y: T.handle, p: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 2})
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.dense_varied(I, (n, nnz), p)
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
    ...         with T.init():
    ...             Y[i] = 0.0
    ...         Y[i] = Y[i] + A[i, j]
    ... ''')
    >>> found = schedule_report(program, Machine())
    >>> found.rule, found.decisions[1].what
    ('row_spmv', '16 partial results in lanes, the remainder masked')
    >>> found.schedule == default_schedule(program, Machine())
    True
    """
    matched = _first_match(module, _context(machine, stats))
    return _NO_RULE if matched is None else matched.report


def _first_match(module: Module, context: RuleContext) -> FoundMatch | None:
    """Return the match of the first rule that matches a program; None if there is none."""
    # No rule matches a later stage, and those that are tried are imported: a tenth of a first call.
    if module.stage != "coordinate":
        return None
    return first_match(_rules_for(module, context.machine), forms_of(module), context)


def _rules_for(module: Module, machine: Machine) -> Rules:
    """Return the rules for the kind of machine, and programs of as many iterations. Not all rules, since a
    rule is imported when it is tried."""
    if machine.grid is not None:
        return GRID_RULES
    return ITERATION_RULES if several_iterations(module) is None else COMBINING_RULES


_NO_RULE = ScheduleReport(None, "not a pattern of any rule: the program runs as written")


@typed
def default_space(module: Module, machine: Machine, stats: Stats | None = None) -> ScheduleSpace:
    """Return the schedules for all choices of the rule whose pattern matches; the first is that of
    `schedule_report`.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_testkit import script
    >>> spmm = parse_module(script("csr_spmm"))
    >>> space = default_space(spmm, Machine())
    >>> space.prior == schedule_report(spmm, Machine())
    True
    >>> [choice.name for choice in space.prior.choices]
    ['csrmm.tile_vectors']
    """
    # Imported late: only a search needs all schedules.
    from gossamer_schedule.rules.enumerate_schedules import enumerate_schedules

    context = _context(machine, stats)
    matched = _first_match(module, context)
    if matched is None:
        return ScheduleSpace((_NO_RULE,))

    def report_at(point: SchedulePoint) -> ScheduleReport | None:
        at_point = first_match([matched.rule], [matched.form], replace(context, point=point))
        return None if at_point is None else at_point.report

    space = enumerate_schedules(report_at)
    assert space is not None, "the rule matches without a point"
    return space


@typed
def default_schedule(module: Module, machine: Machine, stats: Stats | None = None) -> Schedule:
    """Return the schedule of `schedule_report`; an empty one if no rule matches."""
    return schedule_report(module, machine, stats).schedule


@typed
def apply_rule(
    name: str,
    module: Module,
    machine: Machine,
    stats: Stats | None = None,
    *,
    point: SchedulePoint | None = None,
) -> ScheduleReport | None:
    """Return the schedule of one of `RULES`, by its name; None if its pattern does not match.

    It takes what a rule of a plugin takes, so that such a rule can use those of gossamer. The pattern is
    matched against the program as it is; `schedule_report` also tries other forms of it. `point` has values
    of choices of the rule.

    Raises `ArgumentError`: `rule.name`, and `schedule.choice` for a choice or a value that the rule does not
    have.

    >>> from gossamer_testkit.examples import SCALE
    >>> apply_rule("row_sddmm", SCALE, Machine())
    >>> apply_rule("spmm", SCALE, Machine())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_support.errors.ArgumentError: There is no rule 'spmm'. ... [rule.name]
    """
    rules = [rule for rule in RULES if rule.name == name]
    if rules:
        context = replace(_context(machine, stats), point=point or {})
        matched = first_match(rules, [ProgramForm(module)], context)
        return None if matched is None else _required_choices(matched.report, context.point)
    raise ArgumentError(
        "rule.name",
        f"There is no rule '{name}'.",
        hint=f"Rules are {', '.join(rule.name for rule in RULES)}.",
    )


def _required_choices(report: ScheduleReport, point: SchedulePoint) -> ScheduleReport:
    """Return a report; raise if it does not have all choices of a point."""
    missing = point.keys() - report.point.keys()
    if missing:
        raise ArgumentError(
            "schedule.choice",
            f"The rule '{report.rule}' does not have the choice {in_quotes(sorted(missing))} here.",
            hint=f"It has {in_quotes(report.point) or 'none'}.",
        )
    return report


def _context(machine: Machine, stats: Stats | None) -> RuleContext:
    """Return the context of a whole program, with the rules for siblings and for its single iterations."""
    rules = ITERATION_RULES if machine.grid is None else GRID_ITERATION_RULES
    return RuleContext(stats, machine=machine, sibling_rules=SIBLING_RULES, iteration_rules=rules)
