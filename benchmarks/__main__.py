"""Measures, prints and stores; see `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks import records
from benchmarks.compile_time import measure_compile_times
from benchmarks.contenders import CONTENDERS, OURS, Prepare
from benchmarks.kernels import Selection, measure_matrix
from benchmarks.machine import describe_machine, versions
from benchmarks.matrices import NAMES, MissingMatrixError, load_matrix
from benchmarks.records import Cell, Run
from benchmarks.report import print_run
from benchmarks.roofline import Roofline, measure_roofline
from benchmarks.rounds import Plan
from benchmarks.variants import load_variants


def parser() -> argparse.ArgumentParser:
    """The options; everything has the default of a full run."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="gossamer's kernels against SciPy, MKL and Numba, interleaved in one run",
    )
    add = options.add_argument
    add("--op", nargs="+", choices=("spmm", "spmv"), default=["spmm", "spmv"])
    add(
        "--matrix",
        nargs="+",
        choices=NAMES,
        default=list(NAMES),
        metavar="NAME",
        help=", ".join(NAMES),
    )
    add("--features", nargs="+", type=int, default=[32, 64, 128, 512], metavar="K")
    add("--threads", nargs="+", type=int, default=[1, 2])
    add("--contender", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    add(
        "--variants",
        type=Path,
        metavar="FILE",
        help="further contenders: VARIANTS of this Python file",
    )
    add("--rounds", type=int, default=9)
    add("--budget", type=float, default=60.0, help="most seconds for a cell")
    add("--skip", nargs="+", choices=("kernels", "compile", "roofline"), default=[])
    add("--no-save", action="store_true", help="print only, store nothing")
    add("--show", type=Path, metavar="FILE", help="print a stored run, measure nothing")
    return options


def measure_rooflines(chosen: argparse.Namespace, console: Console) -> dict[int, Roofline]:
    """What the machine can do, or nothing with the reason."""
    if "roofline" in chosen.skip:
        return {}
    try:
        with console.status("measuring what the machine can do"):
            return {threads: measure_roofline(threads) for threads in chosen.threads}
    except ImportError as error:
        console.print(f"no fractions of the machine's bounds: {error}")
        return {}


def measure_kernels(
    chosen: argparse.Namespace,
    contenders: Mapping[str, Prepare],
    rooflines: Mapping[int, Roofline],
    console: Console,
) -> tuple[list[Cell], dict[str, str]]:
    """The cells of all matrices, and why some matrices are missing."""
    cells: list[Cell] = []
    missing: dict[str, str] = {}
    selection = Selection(tuple(chosen.op), tuple(chosen.features), tuple(chosen.threads))
    plan = Plan(rounds=chosen.rounds, budget_seconds=chosen.budget)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("", total=selection.cells() * len(chosen.matrix))
        for name in chosen.matrix:
            try:
                matrix = load_matrix(name)
            except MissingMatrixError as error:
                missing[name] = str(error)
                progress.advance(task, selection.cells())
                continue
            tick = lambda text: progress.update(task, description=text)  # noqa: E731
            for cell in measure_matrix(name, matrix, selection, contenders, rooflines, plan, tick):
                cells.append(cell)
                progress.advance(task)
    return cells, missing


def settings(chosen: argparse.Namespace) -> dict[str, str]:
    """The options as they were chosen."""
    return {
        key: " ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in vars(chosen).items()
        if value
    }


def measure_run(
    chosen: argparse.Namespace, contenders: Mapping[str, Prepare], console: Console
) -> Run:
    """Everything that was chosen."""
    rooflines = measure_rooflines(chosen, console)
    cells: list[Cell] = []
    missing: dict[str, str] = {}
    if "kernels" not in chosen.skip:
        cells, missing = measure_kernels(chosen, contenders, rooflines, console)
    compile_times = () if "compile" in chosen.skip else measure_compile_times(chosen.op, console)
    return Run(
        date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        machine=describe_machine(),
        versions=versions(),
        settings=settings(chosen),
        rooflines=tuple(rooflines.values()),
        cells=tuple(cells),
        compile_times=tuple(compile_times),
        skipped_matrices=missing,
    )


def main(arguments: Iterable[str] | None = None) -> None:
    """The command."""
    chosen = parser().parse_args(None if arguments is None else list(arguments))
    console = Console(width=None if Console().is_terminal else 160)
    if chosen.show:
        print_run(records.load(chosen.show), console)
        return
    variants = load_variants(chosen.variants) if chosen.variants else {}
    contenders = {**{name: CONTENDERS[name] for name in chosen.contender}, **variants}
    run = measure_run(chosen, contenders, console)
    print_run(run, console, ours=(OURS, *variants))
    if not chosen.no_save:
        console.print(f"stored as {records.save(run)}")


if __name__ == "__main__":
    main()
