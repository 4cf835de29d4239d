"""The part of benchmarks/README.md that shows the stored runs, one of the operators for each CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import run_files
from benchmarks.records import Run
from benchmarks.report.run_report import headlines, summary
from benchmarks.run_files import RESULTS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- stored runs, from here -->", "<!-- to here -->"
VENDORS = ("AMD", "Intel")


def show_in_readme(readme: Path = README, results: Path = RESULTS) -> None:
    """Replace the text between the marks by the stored runs, whose pages and pictures must exist."""
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = stored_runs_text(run_files.stored_runs(results), readme.parent)
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def stored_runs_text(runs: Mapping[Path, Run], folder: Path) -> str:
    """Return the text between the marks."""
    return "\n".join(run_sections(runs, folder))


def run_sections(runs: Mapping[Path, Run], folder: Path) -> Iterator[str]:
    """Yield the summary of the runs of the operators, links to the others with their headlines, and the
    vendors without a run."""
    for path, run in runs.items():
        base = os.path.relpath(path.resolve(), folder.resolve())
        base = Path(base).as_posix().removesuffix(".json")
        links = f"[all figures]({base}.md), [data]({base}.json)"
        if run.name is not None:
            yield f"\n{run.machine.cpu}, other parts ({run.name}), {run.date[:10]}: {links}"
            yield from headlines(run)
            continue
        yield f"\n### {run.machine.vendor}: {run.machine.cpu}\n"
        yield f"{run.date[:10]}: {links}\n"
        if run.rooflines and run.cells:
            yield f"![roofline]({base}.svg)\n"
        yield summary(run).replace("\n### ", "\n#### ").replace("### ", "#### ", 1)
    vendors = {run.machine.vendor for run in runs.values() if run.name is None}
    for vendor in VENDORS:
        if vendor not in vendors:
            yield f"\n### {vendor}\n\nNo run is stored yet.\n"
