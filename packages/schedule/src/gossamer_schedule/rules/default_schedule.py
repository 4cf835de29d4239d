"""The default schedule of a program: that of the first rule whose pattern matches."""

from __future__ import annotations

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Schedule, ScheduleReport, Stats
from gossamer_ir.nodes import Module
from gossamer_ir.support.typed_calls import typed
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.canonical.forms import ProgramForm, forms_of
from gossamer_schedule.rules.first_match import first_match
from gossamer_schedule.rules.ordered_rules import ITERATION_RULES, RULES, SIBLING_RULES
from gossamer_schedule.rules.schedule_rule import RuleContext


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
    ('row_spmv', '16 partial results in lanes, the rest masked')
    >>> found.schedule == default_schedule(program, Machine())
    True
    """
    matched = first_match(RULES, forms_of(module), _context(machine, stats))
    if matched is None:
        return ScheduleReport(None, "not a pattern of any rule: the program runs as written")
    return matched.report


@typed
def default_schedule(module: Module, machine: Machine, stats: Stats | None = None) -> Schedule:
    """Return the schedule of `schedule_report`; an empty one if no rule matches."""
    return schedule_report(module, machine, stats).schedule


@typed
def apply_rule(
    name: str, module: Module, machine: Machine, stats: Stats | None = None
) -> ScheduleReport | None:
    """Return the schedule of one of `RULES`, by its name; None if its pattern does not match.

    It takes what a rule of a plugin takes, so that such a rule can use those of gossamer. The pattern is
    matched against the program as it is; `schedule_report` also tries other forms of it.

    Raises `ArgumentError`: `rule.name`.

    >>> from gossamer_testkit.examples import SCALE
    >>> apply_rule("row_sddmm", SCALE, Machine())
    >>> apply_rule("spmm", SCALE, Machine())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.ArgumentError: There is no rule 'spmm'. ... [rule.name]
    """
    rules = [rule for rule in RULES if rule.name == name]
    if rules:
        matched = first_match(rules, [ProgramForm(module)], _context(machine, stats))
        return None if matched is None else matched.report
    raise ArgumentError(
        "rule.name",
        f"There is no rule '{name}'.",
        hint=f"Rules are {', '.join(rule.name for rule in RULES)}.",
    )


def _context(machine: Machine, stats: Stats | None) -> RuleContext:
    """Return the context of a whole program, with the rules for siblings and for its single iterations."""
    return RuleContext(
        stats, machine=machine, sibling_rules=SIBLING_RULES, iteration_rules=ITERATION_RULES
    )
