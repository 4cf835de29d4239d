"""Tables of ratios of groups of cells: geometric means and minima."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.goals import geometric_mean, main_goal
from benchmarks.records import Cell
from benchmarks.text_tables import Sheet

PLACES: dict[str, Callable[[Cell], bool]] = {
    "in cache": lambda cell: cell.fits_cache,
    "beyond cache": lambda cell: not cell.fits_cache,
}


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


def means_sheet(cells: Sequence[Cell], ours: str) -> Sheet:
    """Return geometric means and minima of the ratios to each other contender, by operator, dtype, threads
    and whether caches hold all."""
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


def mean_text(cells: Iterable[Cell], other: str, ours: str) -> str:
    """Return a text as in `1.23 (0.98)`."""
    ratios = [ratio for cell in cells if (ratio := cell.ratio(other, ours)) is not None]
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else "-"


def groups(cells: Iterable[Cell], ours: str) -> dict[tuple[str, str, int], list[Cell]]:
    """Return the cells of one contender by operator, dtype and number of threads."""
    cells_by_group: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        if ours in cell.figures:
            cells_by_group.setdefault((cell.op, cell.dtype, cell.threads), []).append(cell)
    return cells_by_group


def others_of(cells: Iterable[Cell], ours: str) -> list[str]:
    """Return the other contenders."""
    return [name for name in dict.fromkeys(n for c in cells for n in c.figures) if name != ours]
