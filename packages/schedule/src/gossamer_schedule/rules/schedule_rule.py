"""What a rule is: a function that recognizes a pattern and schedules it, and what it declares of itself.

A rule is a function with the decorator `schedule_rule` in a file of its name. `ordered_rules.py` lists the
rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import NamedTuple, ParamSpec

import msgspec

from gossamer_ir.interchange.records import Decision, ScheduleReport
from gossamer_schedule.rules.cost.gathered_rows import PrefetchThresholds

P = ParamSpec("P")


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


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A rule and what it declares, from which the table of rules in `docs/architecture.md` is generated."""

    function: Callable[..., ScheduleReport | None]
    pattern: str
    """The form of the programs that it recognizes."""
    programs: str
    """Programs of this form."""
    schedule: str
    """What the schedule does, and where that pays."""
    parameters: frozenset[str]
    """The names of the function's parameters."""
    replaces_conversion: bool = False
    """True if programs over formats other than CSR are as fast as those over CSR or faster, so that operators
    compute with tensors in these formats instead of converting them."""

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def has_parts(self) -> bool:
        """True if the rule also schedules one of several iterations over the same rows: it then takes an
        argument `part`, a `RowPart` for such an iteration and None for a program of its own."""
        return "part" in self.parameters

    @property
    def takes_part_rules(self) -> bool:
        """True if the rule schedules several iterations by other rules: it then takes those of `has_parts` as
        an argument `part_rules`."""
        return "part_rules" in self.parameters

    @property
    def takes_iteration_rules(self) -> bool:
        """True if the rule schedules several iterations apart from each other: it then takes the rules for
        programs of one iteration as an argument `iteration_rules`."""
        return "iteration_rules" in self.parameters


def schedule_rule(
    *, pattern: str, programs: str, schedule: str, replaces_conversion: bool = False
) -> Callable[[Callable[P, PatternMatch | None]], Callable[P, ScheduleReport | None]]:
    """Return the decorator of a rule, which attaches the `RuleRecord` with these texts.

    A rule takes the module, the target and the `Stats` of the data (None if unknown), as rules of plugins do.
    It returns a match, or None for a program that it does not recognize; the decorated function returns the
    report of the match.
    """

    def decorate(
        implementation: Callable[P, PatternMatch | None],
    ) -> Callable[P, ScheduleReport | None]:
        @wraps(implementation)
        def rule(*args: P.args, **keywords: P.kwargs) -> ScheduleReport | None:
            match = implementation(*args, **keywords)
            return None if match is None else ScheduleReport(implementation.__name__, *match)

        record = RuleRecord(
            function=rule,
            pattern=pattern,
            programs=programs,
            schedule=schedule,
            parameters=frozenset(signature(implementation).parameters),
            replaces_conversion=replaces_conversion,
        )
        vars(rule)["schedule_rule"] = record
        return rule

    return decorate


def rule_record(rule: Callable[..., ScheduleReport | None]) -> RuleRecord:
    """Return the record that `schedule_rule` has attached to a rule.

    >>> from gossamer_schedule.rules.library.row_sddmm import row_sddmm
    >>> record = rule_record(row_sddmm)
    >>> record.name, record.has_parts, record.programs
    ('row_sddmm', True, 'SDDMM over CSR and ragged rows')
    """
    record: RuleRecord = vars(rule)["schedule_rule"]
    return record
