"""The tables of passes in `packages/lower/README.md` and `docs/architecture.md`.

They are derived from the list of passes, what each declares, and the first sentence of its docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from gossamer_lower.lower_to_flat import LISTED
from gossamer_lower.lowering_pass import PassRecord
from tools import ROOT, with_table

PIPELINE = tuple(record for record in LISTED if not record.on_request)
HEADERS = {
    ROOT / "packages/lower/README.md": "| pass | from, to | does |",
    ROOT / "docs/architecture.md": "| to stage | passes |",
}


def first_sentence(record: PassRecord) -> str:
    """Return the first sentence of the docstring of a pass, without its period."""
    text = " ".join((inspect.getdoc(record.function) or "").partition("\n\n")[0].split())
    return re.split(r"\.(?: |$)", text)[0]


def described() -> Iterator[str]:
    """Yield a row for each pass: its name, its stages, and what it does."""
    for record in PIPELINE:
        (taken,) = record.takes
        stages = taken if record.gives == taken else f"{taken}, {record.gives}"
        yield f"| `{record.name}` | {stages} | {first_sentence(record)} |"


def by_stage() -> Iterator[str]:
    """Yield a row for each stage, with the passes that lead to it."""
    names: dict[str, list[str]] = {}
    for record in PIPELINE:
        is_single = record.takes in (("coordinate",), ("position",))
        stage: str = record.gives if is_single and record.gives else "flat"
        names.setdefault(stage, []).append(f"`{record.name}`")
    for stage, passes in names.items():
        yield f"| {stage} | {', '.join(passes)} |"


def files() -> dict[Path, str]:
    """Return the documents with their tables as they should be."""
    return {
        path: with_table(
            path.read_text(),
            header=header,
            rows=described() if "does" in header else by_stage(),
        )
        for path, header in HEADERS.items()
    }
