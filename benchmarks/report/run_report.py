"""Reports of a run: on a terminal, and as a page and a picture beside the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.contenders import CHOSEN, OURS, SLICED
from benchmarks.goals import goals_for
from benchmarks.ordered_parts import SERIES
from benchmarks.records import FAILED, Run
from benchmarks.report.cell_tables import conversion_pays_sheet, ratios_sheet, times_sheet
from benchmarks.report.goal_tables import goals_sheet
from benchmarks.report.ratio_tables import best_sheet, means_sheet, sizes_sheet
from benchmarks.report.roofline_picture import draw
from benchmarks.text_tables import Sheet, to_markdown, to_rich


def print_run(run: Run, console: Console, ours: Sequence[str] = (OURS,)) -> None:
    """Print everything on a terminal."""
    for line in machine_lines(run):
        console.print(line, highlight=False)
    for sheet in (*detail_sheets(run, ours), *summary_sheets(run, ours)):
        console.print(to_rich(sheet))
    for line in absence_lines(run):
        console.print(line, highlight=False)


def write_report(path: Path, run: Run) -> tuple[Path, ...]:
    """Write the page beside the data file, and the picture if rooflines were measured."""
    page, picture = path.with_suffix(".md"), path.with_suffix(".svg")
    has_picture = bool(run.rooflines and run.cells)
    if has_picture:
        picture.write_text(draw(run))
    parts = [f"# {run.date}, {run.machine.cpu}", *machine_lines(run)]
    parts += [f"![roofline]({picture.name})"] if has_picture else []
    sheets = (*summary_sheets(run, (OURS, CHOSEN)), *detail_sheets(run, (OURS, CHOSEN)))
    parts += [to_markdown(sheet).rstrip() for sheet in sheets]
    parts += [f"* {line}" for line in absence_lines(run)]
    page.write_text("\n\n".join(parts) + "\n")
    return (page, picture) if has_picture else (page,)


def summary(run: Run) -> str:
    """Return goals, ratios to the fastest other contender and the other parts of a run, as a part of a
    page."""
    return "\n".join(to_markdown(sheet) for sheet in summary_sheets(run, (OURS, CHOSEN)))


def headlines(run: Run) -> Iterator[str]:
    """Yield the most important tables of the parts of a run other than `kernels`, as parts of a page."""
    for series in SERIES:
        if series.headline and run.results_of(series.record):
            yield f"\n#{to_markdown(series.headline(run.results_of(series.record)))}"


def summary_sheets(run: Run, ours: Sequence[str]) -> Iterator[Sheet]:
    """Yield goals, ratios to the fastest other contender, and what is not about kernels."""
    if run.cells:
        yield goals_sheet(run.cells, ours, goals_for(run.machine.vendor))
    for name in ours:
        if any(name in cell.figures for cell in run.cells):
            yield best_sheet(run.cells, name)
            yield sizes_sheet(run.cells, name)
    for series in SERIES:
        if series.summary and run.results_of(series.record):
            yield series.summary(run.results_of(series.record))


def detail_sheets(run: Run, ours: Sequence[str]) -> Iterator[Sheet]:
    """Yield ratios to each other contender, and every cell, operator by operator."""
    for name in ours:
        if any(name in cell.figures for cell in run.cells):
            yield means_sheet(run.cells, name)
    for series in SERIES:
        if series.details and run.results_of(series.record):
            yield series.details(run.results_of(series.record))
    for op in dict.fromkeys(cell.op for cell in run.cells):
        cells = [cell for cell in run.cells if cell.op == op]
        yield times_sheet(op, cells)
        for name in (SLICED, CHOSEN):
            if any(name in cell.figures for cell in cells):
                yield conversion_pays_sheet(op, cells, name)
        for name in ours:
            if any(name in cell.figures for cell in cells):
                yield ratios_sheet(op, cells, name)


def machine_lines(run: Run) -> Iterator[str]:
    """Yield the machine, the versions and the measured bounds."""
    machine = run.machine
    processors = f"{machine.processors} processors of {machine.vendor}"
    yield f"{machine.name}: {machine.cpu}, {processors}, {run.date}"
    yield ", ".join(f"{name} {version}" for name, version in run.versions.items())
    if run.settings:
        yield "settings: " + "; ".join(f"{name}: {text}" for name, text in run.settings.items())
    if run.foreign is not None:
        yield f"other processes used {run.foreign:.2f} processors on average"
    for roof in run.rooflines:
        reads = ", ".join(f"{p.bytes / 2**20:g} MiB {p.gb_per_s:.0f}" for p in roof.read)
        peaks = ", ".join(f"{dtype} {peak:.0f}" for dtype, peak in roof.gflop_per_s.items())
        mark = " (DISTURBED)" if roof.is_disturbed else ""
        yield (
            f"{roof.threads} thread(s){mark}: triad {roof.triad_gb_per_s:.1f} GB/s; peak, GFLOP/s: "
            f"{peaks}; reading, GB/s by working set: {reads}"
        )


def absence_lines(run: Run) -> Iterator[str]:
    """List skipped contenders with reasons, wrong results, and the numbers of cells that were measured again
    or disturbed."""
    for name, reason in run.missing.items():
        yield f"{name}: {reason}" if name.startswith(FAILED) else f"skipped: {name}: {reason}"
    reasons: dict[tuple[str, str], list[str]] = {}
    for cell in run.cells:
        for name, reason in cell.skipped.items():
            reasons.setdefault((name, reason), []).append(cell.op)
    for (name, reason), ops in reasons.items():
        yield f"skipped: {name} on {', '.join(dict.fromkeys(ops))}: {reason}"
    for cell in run.cells:
        yield from (f"WRONG: {text}" for text in cell.wrong.values())
    again = sum(cell.is_measured_again for cell in run.cells)
    if again:
        yield f"{again} of {len(run.cells)} cells missed a goal and were measured in further rounds"
    disturbed = sum(cell.is_disturbed for cell in run.cells)
    if disturbed:
        yield f"{disturbed} of {len(run.cells)} cells: other processes used the processors"
