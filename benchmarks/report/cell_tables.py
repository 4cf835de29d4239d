"""Tables of the cells of an operator: times, ratios to the others, and conversions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.contenders import OURS
from benchmarks.goals import main_goal
from benchmarks.records import Cell
from benchmarks.report.ratio_tables import others_of
from benchmarks.text_tables import Sheet, TableRow


def times_sheet(op: str, cells: Sequence[Cell]) -> Sheet:
    """Return medians in milliseconds, and the fraction of this machine's bound that each reaches."""
    names = list(dict.fromkeys(name for cell in cells for name in cell.figures))
    columns = ("matrix", "K", "thr", "least MB", "MFLOP", "cache", "bound ms", *names)
    disturbed = any(cell.is_disturbed for cell in cells)
    note = "* too few samples without other processes; disturbed ones are counted"
    sheet = Sheet(
        f"{op}: median ms (fraction of the bound)", columns, note=note if disturbed else None
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


def ratios_sheet(op: str, cells: Sequence[Cell], ours: str) -> Sheet:
    """Return the medians of the other contenders over ours, cell by cell."""
    others = others_of(cells, ours)
    sheet = Sheet(f"{op}: times {ours} is faster than", ("matrix", "K", "thr", *others))
    for cell in cells:
        ratios = [cell.ratio(other, ours) for other in others]
        texts = ("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        sheet.rows.append((*problem_columns(cell), *texts))
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
        conversion, gained = figure.conversion_ms or 0.0, ours - figure.median_ms
        calls = f"{math.ceil(conversion / gained)} calls" if gained > 0 else "never"
        times = (f"{ours:.3g}", f"{figure.median_ms:.3g}", f"{ratio:.2f}")
        best = "-" if other is None else f"{other:.2f}"
        row = (*times, best, f"{conversion:.3g}", calls)
        sheet.rows.append((*problem_columns(cell), *row))
    return sheet


def problem_columns(cell: Cell) -> TableRow:
    """Return the cell in words."""
    mark = " *" if cell.is_disturbed else ""
    dtype = "" if cell.dtype == "float32" else f" {cell.dtype}"
    return (cell.matrix + dtype + mark, str(cell.features), str(cell.threads))


def time_text(cell: Cell, name: str) -> str:
    """Return a text as in `0.123 (45%)`."""
    if name in cell.wrong:
        return "WRONG"
    figure = cell.figures.get(name)
    if figure is None:
        return "-"
    reached = "" if figure.bound_share is None else f" ({figure.bound_share:.0%})"
    return f"{figure.median_ms:.3g}{reached}"
