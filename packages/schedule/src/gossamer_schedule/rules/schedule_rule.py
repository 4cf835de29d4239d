"""What a rule is: a function that recognizes a pattern and schedules it, and what it declares of itself.

A rule is a function with the decorator `schedule_rule` in a file of its name. `ordered_rules.py` lists the
rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, Protocol

import msgspec

from gossamer_ir.interchange.records import Decision, ScheduleReport, Stats, Target
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.cost.gathered_rows import PrefetchThresholds


class PatternMatch(NamedTuple):
    """What a rule returns for a program that it recognizes: the pattern in words, and its decisions in order.
    `schedule_rule` makes a `ScheduleReport` with the name of the rule from it."""

    pattern: str
    decisions: tuple[Decision, ...] = ()


class RowPart(NamedTuple):
    """The thresholds for an iteration that is one of several over the same rows, which share a loop.

    Elements of a row run one at a time if the mean row has at most `short_row` of them.
    """

    short_row: float
    prefetch: PrefetchThresholds


class RuleContext(msgspec.Struct, frozen=True):
    """What a rule is told besides the program and the target.

    `stats` are those of the data, None if unknown. `part` is None for a program of its own; otherwise the
    program is one of several iterations over the same rows, with these thresholds. The rules for such parts,
    and the rules for programs of one iteration, are in the order in which they are tried.
    """

    stats: Stats | None = None
    part: RowPart | None = None
    part_rules: tuple[RuleRecord, ...] = ()
    iteration_rules: tuple[RuleRecord, ...] = ()


ALONE = RuleContext()
"""The context of a program of its own, about whose data nothing is known."""


class Rule(Protocol):
    """A rule: it returns a report for a program that it recognizes, else None."""

    def __call__(
        self, module: Module, target: Target, context: RuleContext = ALONE
    ) -> ScheduleReport | None: ...


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A rule and what it declares, from which the table of rules in `docs/architecture.md` is generated."""

    name: str
    function: Rule
    pattern: str
    """The form of the programs that it recognizes."""
    programs: str
    """Programs of this form."""
    schedule: str
    """What the schedule does, and where that pays."""
    handles_parts: bool = False
    """True if the rule also schedules one of several iterations over the same rows: the `part` of its
    context."""
    combines_rules: bool = False
    """True if the rule schedules several iterations, by the rules in its context."""
    replaces_conversion: bool = False
    """The field of the same name of its reports (`ScheduleReport`)."""


def schedule_rule(
    *,
    pattern: str,
    programs: str,
    schedule: str,
    handles_parts: bool = False,
    combines_rules: bool = False,
    replaces_conversion: bool = False,
) -> Callable[[Callable[[Module, Target, RuleContext], PatternMatch | None]], Rule]:
    """Return the decorator of a rule, which attaches the `RuleRecord` with these texts.

    A rule takes the module, the target and a `RuleContext`. It returns a match, or None for a program that it
    does not recognize; the decorated function returns the report of the match.
    """

    def decorate(
        implementation: Callable[[Module, Target, RuleContext], PatternMatch | None],
    ) -> Rule:
        name = implementation.__name__

        @wraps(implementation)
        def rule(
            module: Module, target: Target, context: RuleContext = ALONE
        ) -> ScheduleReport | None:
            match = implementation(module, target, context)
            if match is None:
                return None
            return ScheduleReport(name, *match, replaces_conversion=replaces_conversion)

        record = RuleRecord(
            name=name,
            function=rule,
            pattern=pattern,
            programs=programs,
            schedule=schedule,
            handles_parts=handles_parts,
            combines_rules=combines_rules,
            replaces_conversion=replaces_conversion,
        )
        vars(rule)["schedule_rule"] = record
        return rule

    return decorate


def rule_record(rule: Rule) -> RuleRecord:
    """Return the record that `schedule_rule` has attached to a rule.

    >>> from gossamer_schedule.rules.library.row_sddmm import row_sddmm
    >>> record = rule_record(row_sddmm)
    >>> record.name, record.handles_parts, record.programs
    ('row_sddmm', True, 'SDDMM over CSR and ragged rows')
    """
    record: RuleRecord = vars(rule)["schedule_rule"]
    return record
