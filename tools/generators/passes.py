"""The tables of passes and of their order in `packages/lower/README.md` and `docs/architecture.md`, and that
of extension points in `docs/plugins.md`.

They are derived from the list of passes, what each declares, and the first sentence of its docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gossamer_lower.lowering_pass import PassRecord, PipelineName
from gossamer_lower.passes import PASS_RECORDS
from gossamer_lower.pipelines.extension_points import EXTENSION_POINTS
from tools import ROOT, with_table


def _pipeline(name: PipelineName) -> Iterator[PassRecord]:
    return (record for record in PASS_RECORDS if record.pipeline == name)


def first_sentence(record: PassRecord) -> str:
    """Return the first sentence of the docstring of a pass, without its period."""
    text = " ".join((inspect.getdoc(record.function) or "").partition("\n\n")[0].split())
    return re.split(r"\.(?: |$)", text)[0]


def pass_rows() -> Iterator[str]:
    """Yield a row for each pass of the flat pipeline: its name, its stages, and what it does."""
    for record in _pipeline("flat"):
        stages = ", ".join(dict.fromkeys((*record.takes, record.gives or record.takes[0])))
        yield f"| `{record.name}` | {stages} | {first_sentence(record)} |"


def device_pass_rows() -> Iterator[str]:
    """Yield a row for each pass of the pipeline for devices: its name, and what it does."""
    for record in _pipeline("device"):
        yield f"| `{record.name}` | {first_sentence(record)} |"


def order() -> Iterator[str]:
    """Yield a row for each declaration that a pass runs after or before another one, with the reason."""
    for record in PASS_RECORDS:
        for word, others in (("after", record.after), ("before", record.before)):
            for other, reason in others.items():
                yield f"| `{record.name}` {word} `{other}` | {reason} |"


PASSES_OF_ROW = 7
"""The number of passes in a row of the table of stages. A cell with all that lead to the flat stage would be
too long to read."""


def by_stage() -> Iterator[str]:
    """Yield rows for each stage, with the passes that lead to it, and for devices."""
    names: dict[str, list[str]] = {}
    for record in _pipeline("flat"):
        is_single = record.takes in (("coordinate",), ("position",))
        stage: str = record.gives if is_single and record.gives else "flat"
        names.setdefault(stage, []).append(f"`{record.name}`")
    names["flat, for a device"] = [f"`{record.name}`" for record in _pipeline("device")]
    for stage, passes in names.items():
        for start in range(0, len(passes), PASSES_OF_ROW):
            title = f"{stage}, continued" if start else stage
            yield f"| {title} | {', '.join(passes[start : start + PASSES_OF_ROW])} |"


def extension_point_rows() -> Iterator[str]:
    """Yield a row for each extension point: its name, the stage there, and what is removed before it."""
    before: tuple[str, ...] = ()
    for point in EXTENSION_POINTS.values():
        removed = [content for content in point.without if content not in before]
        yield f"| `{point.name}` | {point.stage} | {', '.join(removed)} |"
        before = point.without


TABLES = {
    ROOT / "packages/lower/README.md": {
        "| pass | from, to | does |": pass_rows,
        "| pass for devices | does |": device_pass_rows,
        "| order | because |": order,
    },
    ROOT / "docs/architecture.md": {"| to stage | passes |": by_stage},
    ROOT / "docs/plugins.md": {
        "| extension point | stage | must be gone from here on |": extension_point_rows
    },
}


def files() -> dict[Path, str]:
    """Return the documents with their tables as they should be."""
    return {path: _with_tables(path.read_text(), tables) for path, tables in TABLES.items()}


def _with_tables(text: str, tables: Mapping[str, Callable[[], Iterator[str]]]) -> str:
    for header, rows in tables.items():
        text = with_table(text, header=header, rows=rows())
    return text
