"""Tables of a run, and how it stands against the goals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.contenders import OURS
from benchmarks.records import Cell, CompileTime, Run


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios.

    >>> geometric_mean([0.5, 2.0, 8.0])
    2.0
    """
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


@dataclass(frozen=True)
class Goal:
    """What is wanted of a ratio over all cells of an op with a number of threads; against several
    peers, the fastest of each cell counts. Cells that were disturbed say nothing."""

    op: str
    peers: tuple[str, ...]
    threads: int
    mean: float
    least: float = 0.0

    def ratios(self, cells: Iterable[Cell], ours: str) -> list[float]:
        """The peers' best time over ours, for the cells where all of them took part."""
        found = []
        for cell in cells:
            ratios = [cell.ratio(peer, ours) for peer in self.peers]
            known = [ratio for ratio in ratios if ratio is not None]
            if self.is_about(cell) and not cell.is_disturbed and len(known) == len(ratios):
                found.append(min(known))
        return found

    def is_about(self, cell: Cell) -> bool:
        """Whether the goal is of the cell's op and number of threads."""
        return (cell.op, cell.threads) == (self.op, self.threads)


GOALS = (
    Goal("spmm", ("mkl",), threads=2, mean=1.0, least=0.8),
    Goal("spmm", ("scipy",), threads=2, mean=3.0),
    Goal("spmv", ("scipy", "numba", "mkl_plain"), threads=2, mean=1.0),
    Goal("spmv", ("scipy", "numba", "mkl_plain"), threads=1, mean=1.0),
)


def print_run(run: Run, console: Console, ours: Sequence[str] = (OURS,)) -> None:
    """Everything there is to say about a run."""
    print_machine(run, console)
    for op in dict.fromkeys(cell.op for cell in run.cells):
        cells = [cell for cell in run.cells if cell.op == op]
        console.print(times_table(op, cells))
        for name in ours:
            if any(name in cell.figures for cell in cells):
                console.print(ratios_table(op, cells, name))
    for name in ours:
        console.print(goals_table(run.cells, name))
    if run.compile_times:
        console.print(compile_table(run.compile_times))
    for name, reason in {**run.skipped_matrices, **skipped_contenders(run.cells)}.items():
        console.print(f"skipped: {name}: {reason}")


def skipped_contenders(cells: Iterable[Cell]) -> dict[str, str]:
    """Everybody who could not take part somewhere."""
    return {name: reason for cell in cells for name, reason in cell.skipped.items()}


def print_machine(run: Run, console: Console) -> None:
    """The machine, the versions and the measured bounds."""
    console.print(f"{run.machine.cpu}, {run.machine.processors} processors, {run.date}")
    console.print(", ".join(f"{name} {version}" for name, version in run.versions.items()))
    for roof in run.rooflines:
        reads = ", ".join(f"{p.bytes / 2**20:g} MiB {p.gb_per_s:.0f}" for p in roof.read)
        console.print(
            f"{roof.threads} thread(s): triad {roof.triad_gb_per_s:.1f} GB/s, dense float32 product "
            f"{roof.gflop_per_s:.0f} GFLOP/s; reading, GB/s by working set: {reads}"
        )


def times_table(op: str, cells: Sequence[Cell]) -> Table:
    """Medians in milliseconds, and the fraction of this machine's bound that each reaches."""
    names = list(dict.fromkeys(name for cell in cells for name in cell.figures))
    table = Table(title=f"{op}: median ms (fraction of the bound)", title_justify="left")
    for title in ("matrix", "K", "thr", "least MB", "MFLOP", "bound ms"):
        table.add_column(title, justify="left" if title == "matrix" else "right")
    for name in names:
        table.add_column(name, justify="right")
    for cell in cells:
        bound = "-" if cell.bound_ms is None else f"{cell.bound_ms:.3g}"
        work = (f"{cell.least_bytes / 1e6:.2f}", f"{cell.operations / 1e6:.1f}", bound)
        mark = " *" if cell.is_disturbed else ""
        problem = (cell.matrix + mark, str(cell.features), str(cell.threads))
        table.add_row(*problem, *work, *(time_text(cell, name) for name in names))
    if any(cell.is_disturbed for cell in cells):
        table.caption = "* too few rounds without other processes; disturbed ones are counted"
    return table


def time_text(cell: Cell, name: str) -> str:
    """As in `0.123 (45%)`."""
    if name not in cell.figures:
        return "-"
    fraction = cell.fraction(name)
    reached = "" if fraction is None else f" ({fraction:.0%})"
    return f"{cell.figures[name].median_ms:.3g}{reached}"


def ratios_table(op: str, cells: Sequence[Cell], ours: str) -> Table:
    """The peers' medians over ours, with geometric means and minima per number of threads."""
    names = dict.fromkeys(name for cell in cells for name in cell.figures)
    peers = [name for name in names if name != ours]
    table = Table(title=f"{op}: times {ours} is faster than", title_justify="left")
    for title in ("matrix", "K", "thr", *peers):
        table.add_column(title, justify="left" if title == "matrix" else "right")
    for cell in cells:
        ratios = [cell.ratio(peer, ours) for peer in peers]
        texts = ["-" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        table.add_row(cell.matrix, str(cell.features), str(cell.threads), *texts)
    for threads in sorted({cell.threads for cell in cells}):
        table.add_section()
        means = [summary([c for c in cells if c.threads == threads], peer, ours) for peer in peers]
        table.add_row("geometric mean (least)", "", str(threads), *means)
    return table


def summary(cells: Iterable[Cell], peer: str, ours: str) -> str:
    """As in `1.23 (0.98)`."""
    ratios = [ratio for cell in cells if (ratio := cell.ratio(peer, ours)) is not None]
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else "-"


def goals_table(cells: Sequence[Cell], ours: str) -> Table:
    """Each goal, what was reached, and whether that meets it."""
    table = Table(title=f"goals, {ours}", title_justify="left")
    for title in ("op", "thr", "against", "wanted", "reached", "cells", ""):
        table.add_column(title)
    for goal in GOALS:
        ratios = goal.ratios(cells, ours)
        wanted = f"mean {goal.mean:.1f}" + (f", least {goal.least:.1f}" if goal.least else "")
        row = (goal.op, str(goal.threads), " | ".join(goal.peers), wanted)
        if not ratios:
            table.add_row(*row, "not measured", "0", "")
            continue
        counted = f"{len(ratios)} of {sum(goal.is_about(cell) for cell in cells)}"
        mean, least = geometric_mean(ratios), min(ratios)
        verdict = "met" if mean >= goal.mean and least >= goal.least else "MISSED"
        table.add_row(*row, f"mean {mean:.2f}, least {least:.2f}", counted, verdict)
    return table


def compile_table(times: Iterable[CompileTime]) -> Table:
    """From script to callable in a fresh process; at most 3 times LLVM, a tenth when cached."""
    table = Table(title="script to callable, ms, fresh processes", title_justify="left")
    table.add_column("op")
    table.add_column("K", justify="right")
    table.add_column("done before")
    for title in ("taking", "nothing cached", "LLVM", "ratio", "request cache", "ratio"):
        table.add_column(title, justify="right")
    for time in times:
        table.add_row(
            time.op,
            str(time.features),
            time.done_before,
            f"{time.before_ms:.0f}",
            f"{time.uncached_ms:.1f}",
            f"{time.llvm_ms:.1f}",
            f"{time.uncached_ms / time.llvm_ms:.2f}",
            f"{time.cached_ms:.2f}",
            f"{time.cached_ms / time.uncached_ms:.3f}",
        )
    return table
