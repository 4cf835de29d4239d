"""The index of `docs/decisions`: the first heading of each decision."""

from __future__ import annotations

import re
from pathlib import Path

from tools import ROOT

FOLDER = ROOT / "docs/decisions"
_TITLE = re.compile(r"^# (?:\d+\. )?(.+)$", re.MULTILINE)
_HEAD = """\
# Decisions

Each page says what was decided, and why. `python -m tools.generate decisions` writes this list.

| | decision |
|--:|---|
"""


def files() -> dict[Path, str]:
    """Return the index, oldest decision first."""
    rows = (
        f"| {int(path.name[:4])} | [{title_of(path)}]({path.name}) |\n"
        for path in sorted(FOLDER.glob("[0-9]*.md"))
    )
    return {FOLDER / "README.md": _HEAD + "".join(rows)}


def title_of(path: Path) -> str:
    """Return the first heading of a decision, without its number."""
    title = _TITLE.search(path.read_text())
    if title is None:
        raise ValueError(f"{path.name} has no heading")
    return title[1]
