"""Reports of a run: on a terminal, and as a page and a picture beside the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.contenders import CHOSEN, OURS, SLICED
from benchmarks.goals import Goal, Outcome, geometric_mean, goals_for, main_goal
from benchmarks.records import (
    FAILED,
    CallCost,
    Cell,
    CompileTime,
    MiniBatches,
    PythonShare,
    Run,
    Startup,
)
from benchmarks.report.choice_tables import choices_sheet, format_times_sheet
from benchmarks.report.conversion_tables import (
    builds_sheet,
    conversion_times_sheet,
    conversions_sheet,
)
from benchmarks.report.program_tables import program_times_sheet, programs_sheet
from benchmarks.report.roofline_picture import draw
from benchmarks.report.text_tables import Row, Sheet, to_markdown, to_rich

PLACES: dict[str, Callable[[Cell], bool]] = {
    "in cache": lambda cell: cell.fits_cache,
    "beyond cache": lambda cell: not cell.fits_cache,
}


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
    """Goals, ratios to the fastest other contender and the other parts of a run, as a part of a page."""
    return "\n".join(to_markdown(sheet) for sheet in summary_sheets(run, (OURS, CHOSEN)))


def summary_sheets(run: Run, ours: Sequence[str]) -> Iterator[Sheet]:
    """Goals, ratios to the fastest other contender, and what is not about kernels."""
    if run.cells:
        yield goals_sheet(run.cells, ours, goals_for(run.machine.vendor))
    for name in ours:
        if any(name in cell.figures for cell in run.cells):
            yield best_sheet(run.cells, name)
            yield sizes_sheet(run.cells, name)
    if run.compile_times:
        yield compile_sheet(run.compile_times)
    if run.python_shares:
        yield python_sheet(run.python_shares)
    if run.startups:
        yield startup_sheet(run.startups)
    if run.call_costs:
        yield calls_sheet(run.call_costs)
    if run.mini_batches:
        yield batches_sheet(run.mini_batches)
    if run.conversion_times:
        yield conversions_sheet(run.conversion_times)
    if run.format_builds:
        yield builds_sheet(run.format_builds)
    if run.program_times:
        yield programs_sheet(run.program_times)
    if run.choice_times:
        yield choices_sheet(run.choice_times)


def detail_sheets(run: Run, ours: Sequence[str]) -> Iterator[Sheet]:
    """Ratios to each other contender, and every cell, operator by operator."""
    for name in ours:
        if any(name in cell.figures for cell in run.cells):
            yield means_sheet(run.cells, name)
    if run.conversion_times:
        yield conversion_times_sheet(run.conversion_times)
    if run.program_times:
        yield program_times_sheet(run.program_times)
    if run.choice_times:
        yield format_times_sheet(run.choice_times)
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
    """List skipped contenders with reasons, wrong results, and the number of disturbed cells."""
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
    disturbed = sum(cell.is_disturbed for cell in run.cells)
    if disturbed:
        yield f"{disturbed} of {len(run.cells)} cells: other processes used the processors"


def problem_columns(cell: Cell) -> Row:
    """Return the cell in words."""
    mark = " *" if cell.is_disturbed else ""
    dtype = "" if cell.dtype == "float32" else f" {cell.dtype}"
    return (cell.matrix + dtype + mark, str(cell.features), str(cell.threads))


def times_sheet(op: str, cells: Sequence[Cell]) -> Sheet:
    """Medians in milliseconds, and the fraction of this machine's bound that each reaches."""
    names = list(dict.fromkeys(name for cell in cells for name in cell.figures))
    columns = ("matrix", "K", "thr", "least MB", "MFLOP", "cache", "bound ms", *names)
    disturbed = any(cell.is_disturbed for cell in cells)
    note = "* too few samples without other processes; disturbed ones are counted"
    sheet = Sheet(
        f"{op}: median ms (fraction of the bound)", columns, note=note if disturbed else ""
    )
    for cell in cells:
        work = (
            f"{cell.least_bytes / 1e6:.2f}",
            f"{cell.operations / 1e6:.1f}",
            "fits" if cell.fits_cache else "-",
            "-" if cell.bound_ms is None else f"{cell.bound_ms:.3g}",
        )
        times = (time_text(cell, name) for name in names)
        sheet.rows.append((*problem_columns(cell), *work, *times))
    return sheet


def conversion_pays_sheet(op: str, cells: Sequence[Cell], converted: str) -> Sheet:
    """Return the times with the matrix in CSR and as a contender converts it, the time of the conversion, and
    the number of calls from which it pays."""
    columns = (
        "CSR ms",
        "converted ms",
        "CSR / converted",
        "best other / converted",
        "conversion ms",
        "pays after",
    )
    title = f"{op}: {converted}, and the calls that pay for its conversion"
    sheet = Sheet(title, ("matrix", "K", "thr", *columns))
    for cell in cells:
        ratio, other = cell.ratio(OURS, converted), main_goal(op).ratio(cell, converted)
        if ratio is None:
            continue
        ours, figure = cell.figures[OURS].median_ms, cell.figures[converted]
        gained = ours - figure.median_ms
        calls = f"{math.ceil(figure.conversion_ms / gained)} calls" if gained > 0 else "never"
        times = (f"{ours:.3g}", f"{figure.median_ms:.3g}", f"{ratio:.2f}")
        best = "-" if other is None else f"{other:.2f}"
        row = (*times, best, f"{figure.conversion_ms:.3g}", calls)
        sheet.rows.append((*problem_columns(cell), *row))
    return sheet


def time_text(cell: Cell, name: str) -> str:
    """As in `0.123 (45%)`."""
    if name in cell.wrong:
        return "WRONG"
    figure = cell.figures.get(name)
    if figure is None:
        return "-"
    reached = "" if figure.of_bound is None else f" ({figure.of_bound:.0%})"
    return f"{figure.median_ms:.3g}{reached}"


def others_of(cells: Iterable[Cell], ours: str) -> list[str]:
    """Return the other contenders."""
    return [name for name in dict.fromkeys(n for c in cells for n in c.figures) if name != ours]


def ratios_sheet(op: str, cells: Sequence[Cell], ours: str) -> Sheet:
    """Return the medians of the other contenders over ours, cell by cell."""
    others = others_of(cells, ours)
    sheet = Sheet(f"{op}: times {ours} is faster than", ("matrix", "K", "thr", *others))
    for cell in cells:
        ratios = [cell.ratio(other, ours) for other in others]
        texts = ("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        sheet.rows.append((*problem_columns(cell), *texts))
    return sheet


def means_sheet(cells: Sequence[Cell], ours: str) -> Sheet:
    """Geometric means and minima of the ratios to each other contender, by operator, dtype, threads and
    whether caches hold all."""
    others = others_of(cells, ours)
    title = f"times {ours} is faster than: geometric mean (least)"
    sheet = Sheet(title, ("op", "dtype", "where", "thr", "cells", *others), words=3)
    for group, here in groups(cells, ours).items():
        op, dtype, threads = group
        for place, belongs in PLACES.items():
            chosen = [cell for cell in here if belongs(cell)]
            if chosen:
                means = (mean_text(chosen, other, ours) for other in others)
                sheet.rows.append((op, dtype, place, str(threads), str(len(chosen)), *means))
    return sheet


def groups(cells: Iterable[Cell], ours: str) -> dict[tuple[str, str, int], list[Cell]]:
    """Return the cells of one contender by operator, dtype and number of threads."""
    cells_by_group: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        if ours in cell.figures:
            cells_by_group.setdefault((cell.op, cell.dtype, cell.threads), []).append(cell)
    return cells_by_group


def best_sheet(cells: Sequence[Cell], ours: str) -> Sheet:
    """Return the time of the fastest other contender over ours: geometric mean, least, and where; by
    operator, dtype and threads."""
    title = f"time of the fastest other contender / time of {ours}"
    columns = ("op", "dtype", "thr", "cells", "mean", "least", "in")
    sheet = Sheet(title, columns, words=2)
    for (op, dtype, threads), here in groups(cells, ours).items():
        outcome = main_goal(op).outcome(here, ours)
        if outcome is not None:
            figures = (f"{outcome.mean:.2f}", f"{outcome.least:.2f}", outcome.worst.name())
            counted = str(len(outcome.cells))
            sheet.rows.append((op, dtype, str(threads), counted, *figures))
    return sheet


def sizes_sheet(cells: Sequence[Cell], ours: str) -> Sheet:
    """Return the time of the fastest other contender over ours for each number of features: geometric mean
    (least)."""
    sizes = sorted({cell.features for cell in cells if cell.features > 1})
    title = f"time of the fastest other contender / time of {ours}, by K: mean (least)"
    sheet = Sheet(title, ("op", "dtype", "thr", *map(str, sizes)), words=2)
    for (op, dtype, threads), here in groups(cells, ours).items():
        outcomes = [
            main_goal(op).outcome([cell for cell in here if cell.features == size], ours)
            for size in sizes
        ]
        texts = [f"{one.mean:.2f} ({one.least:.2f})" if one else "-" for one in outcomes]
        if any(outcomes):
            sheet.rows.append((op, dtype, str(threads), *texts))
    return sheet


def mean_text(cells: Iterable[Cell], other: str, ours: str) -> str:
    """As in `1.23 (0.98)`."""
    ratios = [ratio for cell in cells if (ratio := cell.ratio(other, ours)) is not None]
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else "-"


def goals_sheet(cells: Sequence[Cell], ours: Sequence[str], goals: Sequence[Goal]) -> Sheet:
    """Each goal, the result, and whether the goal is met."""
    columns = ("who", "op", "on", "best of", "cells", "mean", "wanted", "least", "wanted", "in", "")
    sheet = Sheet("goals", columns, words=4)
    for goal in goals:
        for name in (goal.who,) if goal.who else ours:
            outcome = goal.outcome(cells, name)
            # The first one has each operator; others have some of them.
            if outcome is None and name != ours[0]:
                continue
            row = (name, goal.op, goal.on or "all", " ".join(goal.contenders))
            limits = (f"{goal.mean:.2f}", f"{goal.least:.2f}")
            if outcome is None:
                sheet.rows.append((*row, "0", "-", limits[0], "-", limits[1], "", "not measured"))
                continue
            mean, least = f"{outcome.mean:.2f}", f"{outcome.least:.2f}"
            figures = (str(len(outcome.cells)), mean, limits[0], least, limits[1])
            sheet.rows.append((*row, *figures, outcome.worst.name(), verdict_of(outcome)))
    return sheet


def verdict_of(outcome: Outcome) -> str:
    """As in `MISSED, 3 cells below, 1 disturbed, not measured: torch K=16`."""
    parts = ["met" if outcome.is_met else "MISSED"]
    if outcome.below:
        parts.append(f"{outcome.below} cell{'s' * (outcome.below > 1)} below")
    if outcome.disturbed:
        parts.append(f"{outcome.disturbed} disturbed")
    if outcome.absent:
        parts.append(f"not measured: {' '.join(outcome.absent)}")
    return ", ".join(parts)


def compile_sheet(times: Iterable[CompileTime]) -> Sheet:
    """From script to callable in a fresh process; at most 3 times LLVM, a tenth when cached."""
    columns = ("op", "done before", "K", "taking", "nothing cached", "LLVM", "ratio")
    sheet = Sheet(
        "script to callable, ms, fresh processes", (*columns, "request cache", "ratio"), words=2
    )
    for time in times:
        texts = (
            f"{time.before_ms:.0f}",
            f"{time.uncached_ms:.1f}",
            f"{time.llvm_ms:.1f}",
            f"{time.uncached_ms / time.llvm_ms:.2f}",
            f"{time.cached_ms:.2f}",
            f"{time.cached_ms / time.uncached_ms:.3f}",
        )
        sheet.rows.append((time.op, time.done_before, str(time.features), *texts))
    return sheet


def python_sheet(shares: Iterable[PythonShare]) -> Sheet:
    """Python's time against its goal."""
    columns = ("what", "Python", "LLVM", "ratio", "wanted at most", "")
    sheet = Sheet("what Python takes to compile, ms, fresh processes", columns)
    for share in shares:
        figures = (f"{share.python_ms:.1f}", f"{share.llvm_ms:.1f}", f"{share.ratio:.2f}")
        verdict = "met" if share.is_met else "MISSED"
        sheet.rows.append((share.what, *figures, f"{share.limit:.1f}", verdict))
    return sheet


def startup_sheet(startups: Iterable[Startup]) -> Sheet:
    """Start times against their goals."""
    sheet = Sheet("start, ms, fresh processes", ("what", "median", "wanted below", "LLVM", ""))
    for one in startups:
        loaded = {None: "-", False: "not loaded", True: "LOADED"}[one.loads_llvm]
        verdict = "met" if one.is_met else "MISSED"
        limit = "-" if one.limit_ms is None else f"{one.limit_ms:.0f}"
        figures = (f"{one.median_ms:.0f}", limit, loaded, verdict)
        sheet.rows.append((one.what, *figures))
    return sheet


def batches_sheet(runs: Iterable[MiniBatches]) -> Sheet:
    """Memory, files and overhead of many different matrices in one process."""
    columns = (
        "graph",
        "batches",
        "memory, MB",
        "late files",
        "besides the kernel, us",
        "SciPy, us",
        "",
    )
    title = "different matrices in one process; wanted: below 5 MB, no files, 25 us"
    sheet = Sheet(title, columns)
    for one in runs:
        figures = (f"{one.batches:,}", f"{one.grown_mb:.1f}", str(one.late_files))
        times = (f"{one.overhead_us:.1f}", f"{one.scipy_us:.1f}")
        sheet.rows.append((one.graph, *figures, *times, "met" if one.is_met else "MISSED"))
    return sheet


def calls_sheet(costs: Iterable[CallCost]) -> Sheet:
    """Costs of calls on one element against their goals."""
    columns = ("op", "call", "median", "wanted below", "")
    sheet = Sheet("cost of a call, us, one element, one thread", columns, words=2)
    for cost in costs:
        limit = "-" if cost.limit_us is None else f"{cost.limit_us:g}"
        verdict = "" if cost.limit_us is None else "met" if cost.is_met else "MISSED"
        sheet.rows.append((cost.op, cost.what, f"{cost.median_us:.2f}", limit, verdict))
    return sheet
