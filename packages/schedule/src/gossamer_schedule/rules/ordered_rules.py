"""The rules in the order in which they are tried: the one list of them.

A rule is added here by one line in `ORDERED_RULES`, its name at its place; the first rule that matches is
used. `python -m tools.generate rules` adds the flags that its decorator declares, so that rules are chosen
before they are imported. If two rules match a program, one declares in its decorator that it is tried
before or after the other, and why. A rule at another place is refused when it is imported. Other rules may
be in any order. The rules that `schedule_report` tries for a program, those that `fused_rows` and
`separate_iterations` try for its iterations, and the table in `docs/schedules.md` follow from this list and
from what the decorator of each rule declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module

from gossamer_ir.errors import InternalError
from gossamer_schedule.rules.schedule_rule import RuleFlags, RuleRecord, rule_record
from gossamer_support.declared_order import misplacements


class OrderedRule(RuleFlags, frozen=True):
    """A rule by its name, which is that of a file in `library` and of the function in it, with the flags of
    its decorator."""

    name: str


ORDERED_RULES = (
    OrderedRule("row_spmm", handles_siblings=True),
    OrderedRule("row_spmv", handles_siblings=True),
    OrderedRule("block_spmv"),
    OrderedRule("tensorized_block_spmm"),
    OrderedRule("block_spmm"),
    OrderedRule("tile_spmm"),
    OrderedRule("row_sddmm", handles_siblings=True),
    OrderedRule("slice_spmv"),
    OrderedRule("group_spmm"),
    OrderedRule("elementwise", handles_siblings=True),
    OrderedRule("dense_rows", handles_siblings=True),
    OrderedRule("scatter_spmm"),
    OrderedRule("n_m_spmm"),
    OrderedRule("fused_rows", combines_rules=True),
    OrderedRule("separate_iterations", combines_rules=True),
    OrderedRule("grid_block_sddmm", is_for_grids=True),
    OrderedRule("grid_rows", is_for_grids=True),
    OrderedRule("grid_n_m_spmm", is_for_grids=True),
    OrderedRule("grid_block_spmm", is_for_grids=True),
    OrderedRule("grid_dense_rows", is_for_grids=True),
    OrderedRule("grid_iterations", combines_rules=True, is_for_grids=True),
)


class Rules:
    """The rules that fulfill a condition, in order. Each is imported when it is reached: the first rule that
    matches ends the search, and a product is recognized by one of the first. Importing all rules takes a
    twentieth of a first call."""

    def __init__(self, is_included: Callable[[OrderedRule], bool] = lambda _rule: True) -> None:
        self._names = tuple(rule.name for rule in ORDERED_RULES if is_included(rule))

    def __iter__(self) -> Iterator[RuleRecord]:
        return map(_record, self._names)


@cache
def _record(name: str) -> RuleRecord:
    record = rule_record(getattr(import_module(f"gossamer_schedule.rules.library.{name}"), name))
    require_declared_place(record, [rule.name for rule in ORDERED_RULES])
    return record


def require_declared_place(record: RuleRecord, names: Sequence[str]) -> None:
    """Raise `InternalError` unless a rule is at a place among the names of all rules that it declares.

    >>> from gossamer_schedule.rules.library.block_spmv import block_spmv
    >>> require_declared_place(rule_record(block_spmv), ["block_spmm", "block_spmv"])
    ... # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    gossamer_support.errors.InternalError: The rule 'block_spmv' is listed after 'block_spmm', but must be
    tried before it: it matches fewer programs, with blocks that fill vectors
    """
    for listed, needed in misplacements(
        record.name, names, after=record.after, before=record.before
    ):
        raise InternalError(
            f"The rule '{record.name}' is listed {listed}, but must be tried {needed}"
        )


RULES = Rules()
"""The records of the rules, in this order; the first rule that matches is used."""

SIBLING_RULES = Rules(lambda rule: rule.handles_siblings)
"""The rules that also schedule one of several iterations over the same rows."""

ITERATION_RULES = Rules(lambda rule: not (rule.combines_rules or rule.is_for_grids))
"""The rules for programs of one iteration, on a CPU."""

GRID_RULES = Rules(lambda rule: rule.is_for_grids)
"""The rules for machines that run grids of threads."""

GRID_ITERATION_RULES = Rules(lambda rule: rule.is_for_grids and not rule.combines_rules)
"""The rules for programs of one iteration, on machines that run grids of threads."""

COMBINING_RULES = Rules(lambda rule: rule.combines_rules and not rule.is_for_grids)
"""The rules for programs of several iterations, on a CPU."""
