"""The rules in the order in which they are tried: the one list of them.

A rule is added here by one line in `ORDERED_RULES`, at its place; the first rule that matches is used. The
rules that `schedule_report` tries, those that `fused_rows` tries for its iterations, and the table in
`docs/architecture.md` follow from this list and from what the decorator of each rule declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module

from gossamer_schedule.rules.schedule_rule import RuleRecord, rule_record

ORDERED_RULES = (
    "row_spmv",
    "row_spmm",
    # Before `block_spmm`, which matches all of these programs.
    "block_spmv",
    # Before `block_spmm`, which matches all of its programs, too.
    "tensorized_block_spmm",
    "block_spmm",
    "tile_spmm",
    "row_sddmm",
    "slice_spmv",
    "group_spmm",
    "elementwise",
    "dense_rows",
    "scatter_spmm",
    "fused_rows",
    "separate_iterations",
)
"""The names of the rules. Each is that of a file in `library`, and of the function in it."""


class Rules:
    """The rules that fulfill a condition, in order. Each is imported when it is reached: the first rule that
    matches ends the search, and a product is recognized by one of the first. Importing all rules takes a
    twentieth of a first call."""

    def __init__(self, is_included: Callable[[RuleRecord], bool] = lambda _rule: True) -> None:
        self._is_included = is_included

    def __iter__(self) -> Iterator[RuleRecord]:
        return filter(self._is_included, map(_record, ORDERED_RULES))


@cache
def _record(name: str) -> RuleRecord:
    return rule_record(getattr(import_module(f"gossamer_schedule.rules.library.{name}"), name))


RULES = Rules()
"""The records of the rules, in this order; the first rule that matches is used."""

SIBLING_RULES = Rules(lambda rule: rule.handles_siblings)
"""The rules that also schedule one of several iterations over the same rows."""

ITERATION_RULES = Rules(lambda rule: not rule.combines_rules)
"""The rules for programs of one iteration."""
