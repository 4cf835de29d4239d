"""Runs the parts of a benchmark; results are kept if a later part fails or is interrupted."""

from __future__ import annotations

import argparse
import datetime
import platform

from rich.console import Console

from benchmarks import options
from benchmarks.contenders.contender import UnavailableError
from benchmarks.harness.job import Job
from benchmarks.harness.process import ContenderStart, Remote
from benchmarks.harness.progress import Bar, progress_bar
from benchmarks.harness.tasks import plan_batches
from benchmarks.machine.c_libraries import CompilerError, compiler_version
from benchmarks.machine.machine_description import describe_machine
from benchmarks.machine.meter import foreign_share, read_meter
from benchmarks.part import PartError, RunPart
from benchmarks.records import FAILED, Run
from benchmarks.schedule_variants import load_variants

FAILURES = (CompilerError, UnavailableError, PartError)


def job_of(chosen: argparse.Namespace) -> Job:
    """Return the job for the options; loads its matrices."""
    variants = tuple(load_variants(chosen.variants)) if chosen.variants else ()
    selection = options.selection_of(chosen, variants)
    batches, missing = (
        plan_batches(selection, chosen.max_mb * 10**6)
        if any(part.runs_contenders for part in options.selected_parts(chosen))
        else ([], {})
    )
    # Dicts, not sets: contenders and numbers of threads keep their order from run to run.
    names = dict.fromkeys(name for op in selection.ops for name in selection.contenders_of(op))
    threads = dict.fromkeys(count for op in selection.ops for count in selection.threads_of(op))
    return Job(
        chosen=chosen,
        plan=options.plan_of(chosen),
        batches=batches,
        missing=missing,
        contenders={
            name: Remote(
                # A variant is a schedule of gossamer's, so it runs with the interpreter of this process.
                ContenderStart(name, variants=chosen.variants)
                if name in variants
                else ContenderStart(name, options.python_of(chosen, name))
            )
            for name in names
        },
        threads=tuple(sorted(threads)),
        results=[],
    )


def estimated_total(job: Job) -> float:
    """Return the estimated duration of all parts."""
    return sum(part.estimate(job) for part in options.selected_parts(job.chosen))


def measure_run(job: Job, console: Console) -> Run:
    """Measure all selected parts."""
    missing = dict(job.missing)
    # The time that the run and its contenders use is not a disturbance.
    before = read_meter([job.cpu_seconds])
    with progress_bar(console, estimated_total(job)) as bar:
        try:
            for part in options.selected_parts(job.chosen):
                missing |= measure_part(part, job, bar)
        # Measured parts are kept: a run takes long, and its reader sees which parts are missing.
        except KeyboardInterrupt:
            missing[f"{FAILED}: the rest"] = "interrupted"
    return Run(
        date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        machine=describe_machine(job.chosen.machine),
        versions=versions_of(job),
        settings=options.settings(job.chosen),
        missing=missing,
        name=options.run_name(job.chosen),
        foreign=round(foreign_share(before, read_meter([job.cpu_seconds])), 3),
        results=tuple(job.results),
    )


def measure_part(part: RunPart, job: Job, bar: Bar) -> dict[str, str]:
    """Measure one part. Return its failure, if there is one: the other parts follow nevertheless."""
    try:
        for record in part.measure(job, bar):
            job.results.append(record)
    except FAILURES as error:
        return {f"{FAILED}: {part.name}": str(error)}
    return {}


def versions_of(job: Job) -> dict[str, str]:
    """Return the versions of the contenders that took part, and of the C compiler."""
    versions = {"python": platform.python_version()}
    for remote in job.contenders.values():
        versions |= remote.versions
    return versions | {"cc": compiler_version() or "none"}
