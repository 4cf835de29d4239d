"""Rules: functions that recognize a pattern and schedule it, and their declarations.

A rule is a function with the decorator `schedule_rule` in a file of its name. `ordered_rules.py` lists the
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_heuristics.gathered_rows import PREFETCH, PrefetchThresholds
from gossamer_ir.interchange.records import (
    Decision,
    RuleChoice,
    SchedulePoint,
    ScheduleReport,
    Stats,
)
from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.program_names import addresses_taken_names, loop_stage_names
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

_NONE: Mapping[str, str] = MappingProxyType({})


class PatternMatch(msgspec.Struct, frozen=True):
    """The result of a rule for a program that it recognizes: the pattern in words, and the trace in which it
    has planned steps and taken decisions. `schedule_rule` makes a `ScheduleReport` from it."""

    pattern: str
    trace: TraceBuilder


class RowThresholds(msgspec.Struct, frozen=True):
    """Limits of vectors and prefetching for rows.

    Elements of a row run one at a time if the mean row has at most `short_row` of them.
    """

    short_row: float = 0.0
    prefetch: PrefetchThresholds = PREFETCH


class RuleContext(msgspec.Struct, frozen=True):
    """Inputs of a rule besides the program."""

    stats: Stats | None = None
    """The statistics of the data; None if they are unknown."""
    is_sibling: bool = False
    """True if the program is one of several iterations over the same rows, which share a loop. Then the
    `thresholds` are those for siblings."""
    thresholds: RowThresholds = RowThresholds()
    machine: Machine = Machine()
    """The machine that will run the program."""
    taken: frozenset[str] = frozenset()
    """Names that the schedules of other iterations make. `RuleRecord.match` adds those of the program."""
    sibling_rules: Iterable[RuleRecord] = ()
    """The rules for siblings, in the order in which they are tried."""
    iteration_rules: Iterable[RuleRecord] = ()
    """The rules for programs of one iteration, in the order in which they are tried."""
    point: SchedulePoint = {}
    """Values of choices of the rule, which has its own where there are none."""

    def new_trace(self) -> TraceBuilder:
        """Return a trace without steps."""
        return TraceBuilder(self.taken, point=self.point)


ONLY_PROGRAM = RuleContext()
"""The context of a program of its own, about whose data nothing is known, on the machine of the defaults."""

RuleFunction: TypeAlias = Callable[[Module, RuleContext], PatternMatch | None]
"""A function that `schedule_rule` decorates."""


class Rule(Protocol):
    """A rule: it returns a report for a program that it recognizes, else None."""

    def __call__(
        self, module: Module, context: RuleContext = ONLY_PROGRAM
    ) -> ScheduleReport | None: ...


class RuleFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The programs and machines for which a rule is tried."""

    handles_siblings: bool = False
    """True if it also schedules one of several iterations over the same rows: the `is_sibling` of its
    context."""
    combines_rules: bool = False
    """True if its programs have several iterations, which it schedules by the rules in its context; otherwise
    they have one."""
    is_for_grids: bool = False
    """True if it is for machines that run grids of threads; all others are for CPUs."""


class RuleRecord(RuleFlags, frozen=True, kw_only=True):
    """A rule and its declarations, from which the table of rules in `docs/schedules.md` is generated."""

    name: str
    plan: RuleFunction
    """The function that was decorated."""
    pattern: str
    """The form of the programs that it recognizes."""
    programs: str
    """Programs of this form."""
    schedule: str
    """A description of the schedule, and the cases where it pays."""
    replaces_conversion: bool = False
    """The field of the same name of its reports (`ScheduleReport`)."""
    after: Mapping[str, str] = _NONE
    """The rules that are tried earlier, each with the reason."""
    before: Mapping[str, str] = _NONE
    """The rules that are tried later, each with the reason."""

    def match(self, module: Module, context: RuleContext) -> PatternMatch | None:
        """Return the match of the rule, with names that are free in the program; None if it does not match,
        or if the program takes a name of lowering that a step addresses."""
        # Here and not in each rule, so that none can forget it.
        taken = context.taken | loop_stage_names(module)
        extended = replace(context, taken=taken)
        matched = self.plan(module, extended)
        if matched is None or addresses_taken_names(matched.trace.steps, module):
            return None
        return matched

    def report(
        self, pattern: str, decisions: tuple[Decision, ...], choices: tuple[RuleChoice, ...]
    ) -> ScheduleReport:
        """Return a report of the rule."""
        return ScheduleReport(self.name, pattern, decisions, self.replaces_conversion, choices)


def schedule_rule(
    *,
    pattern: str,
    programs: str,
    schedule: str,
    replaces_conversion: bool = False,
    handles_siblings: bool = False,
    combines_rules: bool = False,
    is_for_grids: bool = False,
    after: Mapping[str, str] = _NONE,
    before: Mapping[str, str] = _NONE,
) -> Callable[[RuleFunction], Rule]:
    """Return the decorator of a rule, which attaches the `RuleRecord` with these texts.

    A rule takes the module and a `RuleContext`. It returns a match, or None for a program that it
    does not recognize; the decorated function returns the report of the match.
    """

    def decorate(implementation: RuleFunction) -> Rule:
        record = RuleRecord(
            name=implementation.__name__,
            plan=implementation,
            pattern=pattern,
            programs=programs,
            schedule=schedule,
            replaces_conversion=replaces_conversion,
            handles_siblings=handles_siblings,
            combines_rules=combines_rules,
            is_for_grids=is_for_grids,
            after=after,
            before=before,
        )

        @wraps(implementation)
        def rule(module: Module, context: RuleContext = ONLY_PROGRAM) -> ScheduleReport | None:
            match = record.match(module, context)
            if match is None:
                return None
            return record.report(match.pattern, match.trace.decisions, match.trace.choices)

        vars(rule)["schedule_rule"] = record
        return rule

    return decorate


def rule_record(rule: Rule) -> RuleRecord:
    """Return the record that `schedule_rule` has attached to a rule.

    >>> from gossamer_schedule.rules.library.row_sddmm import row_sddmm
    >>> record = rule_record(row_sddmm)
    >>> record.name, record.programs
    ('row_sddmm', 'SDDMM over CSR and ragged rows')
    """
    record: RuleRecord = vars(rule)["schedule_rule"]
    return record
