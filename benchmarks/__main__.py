"""Runs benchmarks, or reports a stored run; see `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from rich.console import Console

from benchmarks import options, run_files
from benchmarks.contenders import NAMES, OURS
from benchmarks.model_check import model_errors_sheet, with_present_choices
from benchmarks.parts.choice import ChoiceTime, choices_sheet
from benchmarks.records import FAILED, Run
from benchmarks.report.run_report import print_run, write_report
from benchmarks.report.stored_runs import show_in_readme
from benchmarks.run_parts import estimated_total, job_of, measure_run
from benchmarks.text_tables import to_rich


def run_command(chosen: argparse.Namespace, console: Console) -> int:
    """Run the benchmarks. Returns status 1 if a result was wrong or a part failed."""
    console.print("loading matrices")
    with closing(job_of(chosen)) as job:
        console.print(f"about {estimated_total(job) / 60:.1f} minutes on a quiet machine")
        run = measure_run(job, console)
    variants = [name for name in job.contenders if name not in NAMES]
    print_run(run, console, ours=(OURS, *variants))
    if not chosen.no_save:
        store_run(run, chosen.output, console)
    failed = any(name.startswith(FAILED) for name in run.missing)
    return 1 if failed or any(cell.wrong for cell in run.cells) else 0


def store_run(run: Run, folder: Path, console: Console) -> None:
    """Write the data, the page and the picture."""
    path = run_files.save_run(run, folder)
    for written in (path, *write_report(path, run)):
        console.print(f"stored {written}", soft_wrap=True)


def report_command(chosen: argparse.Namespace, console: Console) -> int:
    """Print a stored run and write its page and picture again."""
    run = run_files.load_run(chosen.file)
    print_run(run, console)
    for written in write_report(chosen.file, run):
        console.print(f"wrote {written}", soft_wrap=True)
    if chosen.readme:
        show_in_readme()
    return 0


def check_model_command(chosen: argparse.Namespace, console: Console) -> int:
    """Print what the model chooses now, with the times of a stored run. Returns status 1 if a goal is
    missed."""
    stored = run_files.load_run(chosen.file).results_of(ChoiceTime)
    times = with_present_choices(stored, chosen.target)
    if times:
        console.print(to_rich(model_errors_sheet(times)))
        console.print(to_rich(choices_sheet(times)))
    met = sum(one.is_met for one in stored)
    console.print(
        f"{met} of {len(stored)} met the goals in the run; the run has no time of what is chosen now in "
        f"{len(stored) - len(times)}"
    )
    return 0 if all(one.is_met for one in times) else 1


def gpu_run_command(chosen: argparse.Namespace, console: Console) -> int:
    """Check and measure a GPU. Returns status 2 without one, 1 if a result was wrong."""
    # Only this command needs the plugin for GPUs.
    from benchmarks.gpu.gpu_command import gpu_command

    return gpu_command(chosen, console)


COMMANDS = {
    "run": run_command,
    "report": report_command,
    "check-model": check_model_command,
    "gpu": gpu_run_command,
}


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the command and return its exit status."""
    chosen = options.parse_options(list(sys.argv[1:] if arguments is None else arguments))
    console = Console(width=None if Console().is_terminal else 200)
    return COMMANDS[chosen.command](chosen, console)


if __name__ == "__main__":
    sys.exit(main())
