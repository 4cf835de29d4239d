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
from benchmarks.records import FAILED, Run
from benchmarks.report.run_report import print_run, write_report
from benchmarks.report.stored_runs import show_in_readme
from benchmarks.run_parts import estimated_total, job_of, measure_run


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


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the command and return its exit status."""
    chosen = options.parse_options(list(sys.argv[1:] if arguments is None else arguments))
    console = Console(width=None if Console().is_terminal else 200)
    command = report_command if chosen.command == "report" else run_command
    return command(chosen, console)


if __name__ == "__main__":
    sys.exit(main())
