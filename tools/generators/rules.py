"""The tables of rules in `docs/schedules.md`: what the decorator of each rule declares, and the order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gossamer_schedule.rules import RULES
from tools import ROOT, with_table

DOCUMENT = ROOT / "docs/schedules.md"
HEADER = "| rule | pattern | programs | schedule |"
ORDER_HEADER = "| rule | is tried before | because |"


def files() -> dict[Path, str]:
    """Return the document with its table as it should be."""
    rows = (
        f"| `{rule.name}` | {rule.pattern} | {rule.programs} | {rule.schedule} |" for rule in RULES
    )
    text = with_table(DOCUMENT.read_text(), header=HEADER, rows=rows)
    return {DOCUMENT: with_table(text, header=ORDER_HEADER, rows=_order())}


def _order() -> Iterator[str]:
    """Yield a row for each pair of rules whose order one of them declares."""
    for rule in RULES:
        for later, reason in rule.before.items():
            yield f"| `{rule.name}` | `{later}` | {reason} |"
        for earlier, reason in rule.after.items():
            yield f"| `{earlier}` | `{rule.name}` | {reason} |"
