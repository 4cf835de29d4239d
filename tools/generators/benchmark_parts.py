"""The table of the parts of a run in `benchmarks/README.md`: what the record of each part says."""

from __future__ import annotations

from pathlib import Path

from benchmarks.ordered_parts import PARTS
from benchmarks.part import RunPart
from tools import ROOT, with_table

DOCUMENT = ROOT / "benchmarks/README.md"
HEADER = "| part | measures | options | quick |"


def files() -> dict[Path, str]:
    """Return the document with its table as it should be."""
    rows = (part_row(part) for part in PARTS.values())
    return {DOCUMENT: with_table(DOCUMENT.read_text(), header=HEADER, rows=rows)}


def part_row(part: RunPart) -> str:
    """Return the row of a part."""
    options = " ".join(f"`--{name}`" for name in part.options)
    return f"| `{part.name}` | {part.description} | {options} | {'yes' if part.is_quick else ''} |"
