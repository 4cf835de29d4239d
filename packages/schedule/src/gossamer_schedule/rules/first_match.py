"""The first of several rules that matches a program."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gossamer_ir.interchange.records import Decision, ScheduleReport
from gossamer_schedule.rules.canonical.forms import ProgramForm
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, RuleRecord


class FoundMatch(msgspec.Struct, frozen=True):
    """The match of a rule, and the form of the program that it matches."""

    rule: RuleRecord
    form: ProgramForm
    match: PatternMatch

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions that lead to the form, and those of the rule."""
        return (*self.form.decisions, *self.match.trace.decisions)

    @property
    def report(self) -> ScheduleReport:
        """The report of the rule, with all decisions."""
        return self.rule.report(self.match.pattern, self.decisions, self.match.trace.choices)


def first_match(
    rules: Iterable[RuleRecord], forms: Iterable[ProgramForm], context: RuleContext
) -> FoundMatch | None:
    """Return the match of the first rule that matches the first form that any rule matches; None if there is
    none. The rules are iterated over again for each form, and only up to the one that matches."""
    # All rules for a form before the next form: one that fits the program as written is preferred.
    for form in forms:
        for rule in rules:
            match = rule.match(form.module, context)
            if match is not None:
                return FoundMatch(rule, form, match)
    return None
