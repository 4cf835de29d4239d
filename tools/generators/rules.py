"""The tables of rules in `docs/schedules.md`, and the flags in `ORDERED_RULES`, from the decorators of rules.

The names in `ORDERED_RULES` and their order are kept by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from gossamer_schedule.rules import RULES
from gossamer_schedule.rules.schedule_rule import RuleFlags, RuleRecord
from tools import ROOT, with_table

DOCUMENT = ROOT / "docs/schedules.md"
LIST = ROOT / "packages/schedule/src/gossamer_schedule/rules/ordered_rules.py"
_LISTED = re.compile(r"(?<=^ORDERED_RULES = \(\n).*?(?=^\)$)", re.MULTILINE | re.DOTALL)
HEADER = "| rule | pattern | programs | schedule |"
ORDER_HEADER = "| rule | is tried before | because |"


def files() -> dict[Path, str]:
    """Return the document with its tables, and the list of rules with their flags, as they should be."""
    rows = (
        f"| `{rule.name}` | {rule.pattern} | {rule.programs} | {rule.schedule} |" for rule in RULES
    )
    text = with_table(DOCUMENT.read_text(), header=HEADER, rows=rows)
    return {
        DOCUMENT: with_table(text, header=ORDER_HEADER, rows=_order()),
        LIST: with_listed_rules(LIST.read_text(), RULES),
    }


def with_listed_rules(text: str, rules: Iterable[RuleRecord]) -> str:
    """Return the text of a list of rules with other lines in `ORDERED_RULES`."""
    lines = "".join(map(listed_rule, rules))
    new, count = _LISTED.subn(lambda _: lines, text)
    if count != 1:
        raise ValueError("there is no tuple ORDERED_RULES, or several")
    return new


def listed_rule(rule: RuleRecord) -> str:
    """Return the line of a rule in `ORDERED_RULES`."""
    flags = (f", {flag}=True" for flag in RuleFlags.__struct_fields__ if getattr(rule, flag))
    return f'    OrderedRule("{rule.name}"{"".join(flags)}),\n'


def _order() -> Iterator[str]:
    """Yield a row for each pair of rules whose order one of them declares."""
    for rule in RULES:
        for later, reason in rule.before.items():
            yield f"| `{rule.name}` | `{later}` | {reason} |"
        for earlier, reason in rule.after.items():
            yield f"| `{earlier}` | `{rule.name}` | {reason} |"
