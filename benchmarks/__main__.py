"""Measures, prints and stores, or reports what was stored; see `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from benchmarks import compile_time, options, records, startup
from benchmarks.compiling import CompilerError, compiler_version
from benchmarks.fresh import ProcessError
from benchmarks.harness.cells import measure_cell
from benchmarks.harness.progress import Bar, progress_bar
from benchmarks.harness.rounds import Plan
from benchmarks.harness.tasks import Task, plan_tasks
from benchmarks.machine import describe_machine, versions
from benchmarks.page import show_in_readme
from benchmarks.peers import NAMES, OURS, contenders
from benchmarks.peers.peer import Prepare
from benchmarks.peers.torch import Torch
from benchmarks.records import Cell, CompileTime, Run
from benchmarks.report import print_run, write_report
from benchmarks.roofline import Roofline, measure_roofline
from benchmarks.variants import load_variants

T = TypeVar("T")
ROOFLINE_SECONDS = 8.0
"""About what the roofline of a number of threads takes."""


@dataclass(frozen=True)
class Job:
    """Everything a run needs."""

    chosen: argparse.Namespace
    plan: Plan
    tasks: Sequence[Task]
    missing: Mapping[str, str]
    contenders: Mapping[str, Prepare]
    threads: tuple[int, ...]
    torch: Torch

    def has(self, part: str) -> bool:
        """Whether a part of the run was chosen."""
        return part in self.chosen.parts

    def estimated_seconds(self) -> float:
        """How long all parts take."""
        seconds = ROOFLINE_SECONDS * len(self.threads) if self.has("roofline") else 0.0
        if self.has("kernels"):
            each = (self.seconds_of(task) * len(task.threads) for task in self.tasks)
            seconds += sum(each)
        if self.has("startup"):
            seconds += startup.estimated_seconds()
        if self.has("compile"):
            processes = options.compile_processes(self.chosen)
            seconds += compile_time.estimated_seconds(self.chosen.op, processes)
        return seconds

    def seconds_of(self, task: Task) -> float:
        """How long a cell of a task takes."""
        return task.estimated_seconds(len(self.contenders), self.plan)


def job_of(chosen: argparse.Namespace, torch: Torch) -> Job:
    """The job of the options; matrices are loaded for it."""
    selection = options.selection_of(chosen)
    tasks, missing = plan_tasks(selection) if "kernels" in chosen.parts else ([], {})
    known = contenders(torch)
    variants = load_variants(chosen.variants) if chosen.variants else {}
    return Job(
        chosen=chosen,
        plan=options.plan_of(chosen),
        tasks=tasks,
        missing=missing,
        contenders={**{name: known[name] for name in chosen.peers}, **variants},
        threads=selection.threads,
        torch=torch,
    )


def measure_run(job: Job, console: Console) -> Run:
    """Everything that was chosen."""
    missing = dict(job.missing)
    with progress_bar(console, job.estimated_seconds()) as bar:
        rooflines = measure_rooflines(job, bar, missing)
        cells = measure_cells(job, rooflines, bar)
        startups = measured(startup.measure_startups, job, "startup", bar, missing)
        compile_all = partial(compile_times, job)
        times = measured(compile_all, job, "compile", bar, missing)
    return Run(
        date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        machine=describe_machine(job.chosen.machine),
        versions=versions(torch=job.torch.version(), cc=compiler_version()),
        settings=options.settings(job.chosen),
        rooflines=tuple(rooflines.values()),
        cells=cells,
        compile_times=times,
        startups=startups,
        missing=missing,
    )


def measure_rooflines(job: Job, bar: Bar, missing: dict[str, str]) -> dict[int, Roofline]:
    """What the machine can do, or nothing with the reason."""
    rooflines: dict[int, Roofline] = {}
    for threads in job.threads if job.has("roofline") else ():
        bar.says(f"what the machine can do with {threads} thread(s)")
        try:
            rooflines[threads] = measure_roofline(threads)
        except CompilerError as error:
            missing["fractions of the machine's bounds"] = str(error)
        bar.advance(ROOFLINE_SECONDS)
    return rooflines


def measure_cells(job: Job, rooflines: Mapping[int, Roofline], bar: Bar) -> tuple[Cell, ...]:
    """The cells of all tasks; each problem is made once."""
    cells = []
    for task in job.tasks:
        bar.says(task.describe(task.threads[0]))
        problem = task.problem()
        for threads in task.threads:
            bar.says(task.describe(threads))
            roofline = rooflines.get(threads)
            cells.append(measure_cell(problem, threads, job.contenders, roofline, job.plan))
            bar.advance(job.seconds_of(task))
    return tuple(cells)


def compile_times(job: Job, bar: Bar) -> tuple[CompileTime, ...]:
    """From script to callable for the chosen operators."""
    processes = options.compile_processes(job.chosen)
    return compile_time.measure_compile_times(job.chosen.op, bar, processes)


def measured(
    measure: Callable[[Bar], tuple[T, ...]], job: Job, part: str, bar: Bar, missing: dict[str, str]
) -> tuple[T, ...]:
    """A part that was chosen; what was measured before is kept when it fails."""
    if not job.has(part):
        return ()
    try:
        return measure(bar)
    except ProcessError as error:
        missing[f"FAILED: {part}"] = str(error)
        return ()


def run_command(chosen: argparse.Namespace, console: Console) -> int:
    """Measures; the status is 1 when a result was wrong or a part failed."""
    with closing(Torch(chosen.torch_python)) as torch:
        console.print("loading matrices")
        job = job_of(chosen, torch)
        console.print(f"about {job.estimated_seconds() / 60:.1f} minutes on a quiet machine")
        run = measure_run(job, console)
    variants = [name for name in job.contenders if name not in NAMES]
    print_run(run, console, ours=(OURS, *variants))
    if not chosen.no_save:
        store(run, chosen.output, console)
    failed = any(name.startswith("FAILED") for name in run.missing)
    return 1 if failed or any(cell.wrong for cell in run.cells) else 0


def store(run: Run, folder: Path, console: Console) -> None:
    """The data, the page and the picture."""
    path = records.save(run, folder)
    for written in (path, *write_report(path, run)):
        console.print(f"stored {written}", soft_wrap=True)


def report_command(chosen: argparse.Namespace, console: Console) -> int:
    """Prints a stored run and writes its page and picture again."""
    run = records.load(chosen.file)
    print_run(run, console)
    for written in write_report(chosen.file, run):
        console.print(f"wrote {written}", soft_wrap=True)
    if chosen.readme:
        show_in_readme(chosen.file, run)
    return 0


def main(arguments: Iterable[str] | None = None) -> int:
    """The command; gives its exit status."""
    chosen = options.parse(list(sys.argv[1:] if arguments is None else arguments))
    console = Console(width=None if Console().is_terminal else 200)
    command = report_command if chosen.command == "report" else run_command
    return command(chosen, console)


if __name__ == "__main__":
    sys.exit(main())
