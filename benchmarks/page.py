"""The part of benchmarks/README.md that shows a stored run."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.records import Run
from benchmarks.report import summary

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- a stored run, from here -->", "<!-- to here -->"


def show_in_readme(path: Path, run: Run, readme: Path = README) -> None:
    """Replaces the text between the marks by the picture and the summary of a run, whose page and
    picture must exist beside it."""
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n{shown(path, run, readme.parent)}{END}{after}")


def shown(path: Path, run: Run, folder: Path) -> str:
    """Returns the text between the marks."""
    base = Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix().removesuffix(".json")
    picture = f"![roofline]({base}.svg)\n\n" if run.rooflines and run.cells else ""
    links = f"[all figures]({base}.md), [data]({base}.json)"
    return f"\n{run.machine.cpu}, {run.date[:10]}: {links}\n\n{picture}{summary(run)}\n"
