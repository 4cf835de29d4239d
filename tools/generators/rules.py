"""The table of rules in `docs/schedules.md`: what the decorator of each rule declares."""

from __future__ import annotations

from pathlib import Path

from gossamer_schedule.rules import RULES
from tools import ROOT, with_table

DOCUMENT = ROOT / "docs/schedules.md"
HEADER = "| rule | pattern | programs | schedule |"


def files() -> dict[Path, str]:
    """Return the document with its table as it should be."""
    rows = (
        f"| `{rule.name}` | {rule.pattern} | {rule.programs} | {rule.schedule} |" for rule in RULES
    )
    return {DOCUMENT: with_table(DOCUMENT.read_text(), header=HEADER, rows=rows)}
