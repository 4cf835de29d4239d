"""The table of groups of entry points in `docs/plugins.md`."""

from __future__ import annotations

from pathlib import Path

from gossamer_support.plugins.groups import PLUGIN_GROUPS
from tools import ROOT, with_table

DOCUMENT = ROOT / "docs/plugins.md"
HEADER = "| group | name of the entry point | object | adds | described in |"


def files() -> dict[Path, str]:
    """Return the document with its table as it should be."""
    rows = (
        f"| `{group.name}` | `{group.entry_point}` | {group.object} | {group.adds} | {group.page} |"
        for group in PLUGIN_GROUPS
    )
    return {DOCUMENT: with_table(DOCUMENT.read_text(), header=HEADER, rows=rows)}
