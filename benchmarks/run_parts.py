"""Runs the parts of a benchmark; results are kept if a later part fails or is interrupted."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from benchmarks import options
from benchmarks.contenders import OURS
from benchmarks.contenders.contender import UnavailableError
from benchmarks.harness.cells import measure_batch
from benchmarks.harness.process import ContenderStart, Remote
from benchmarks.harness.progress import Bar, progress_bar
from benchmarks.harness.rounds import SamplingPlan
from benchmarks.harness.tasks import Batch, plan_batches
from benchmarks.machine.c_libraries import CompilerError, compiler_version
from benchmarks.machine.machine_description import describe_machine
from benchmarks.machine.meter import foreign_share, read_meter
from benchmarks.machine.roofline import Roofline, measure_roofline
from benchmarks.parts import (
    call_overhead,
    choice,
    compile_time,
    conversions,
    first_calls,
    mini_batches,
    programs,
    python_share,
    startup,
)
from benchmarks.parts.fresh_process import ProcessError
from benchmarks.records import (
    FAILED,
    CallCost,
    Cell,
    ChoiceTime,
    CompileTime,
    ConversionTime,
    FirstCall,
    FormatBuild,
    MiniBatches,
    ProgramTime,
    PythonShare,
    Run,
    Startup,
)
from benchmarks.schedule_variants import load_variants

FAILURES = (CompilerError, ProcessError, UnavailableError, call_overhead.WrongCallError)
ROOFLINE_SECONDS = 3.0
"""Estimated duration of the roofline for one number of threads."""


@dataclass(frozen=True)
class Job:
    """Everything a run needs."""

    chosen: argparse.Namespace
    plan: SamplingPlan
    batches: Sequence[Batch]
    missing: Mapping[str, str]
    contenders: Mapping[str, Remote]
    threads: tuple[int, ...]

    def cpu_seconds(self) -> float:
        """Return the CPU time of this process, of those that it has started and of the contenders."""
        return sum(os.times()[:4]) + sum(one.cpu_seconds() for one in self.contenders.values())

    def close(self) -> None:
        """End the processes of contenders."""
        for remote in self.contenders.values():
            remote.close()


@dataclass
class Findings:
    """The results so far."""

    missing: dict[str, str]
    rooflines: dict[int, Roofline] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    call_costs: tuple[CallCost, ...] = ()
    startups: tuple[Startup, ...] = ()
    compile_times: tuple[CompileTime, ...] = ()
    first_calls: tuple[FirstCall, ...] = ()
    python_shares: tuple[PythonShare, ...] = ()
    mini_batches: tuple[MiniBatches, ...] = ()
    conversion_times: tuple[ConversionTime, ...] = ()
    format_builds: tuple[FormatBuild, ...] = ()
    program_times: tuple[ProgramTime, ...] = ()
    choice_times: tuple[ChoiceTime, ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return the fields of `Run` with the same names."""
        rooflines, cells = tuple(self.rooflines.values()), tuple(self.cells)
        return {**vars(self), "rooflines": rooflines, "cells": cells}


@dataclass(frozen=True)
class Part:
    """A part of a run: its estimated seconds, and the function that measures it."""

    estimate: Callable[[Job], float]
    measure: Callable[[Job, Findings, Bar], None]


def job_of(chosen: argparse.Namespace) -> Job:
    """Return the job for the options; loads its matrices."""
    variants = tuple(load_variants(chosen.variants)) if chosen.variants else ()
    selection = options.selection_of(chosen, variants)
    parts = options.parts_of(chosen)
    batches, missing = (
        plan_batches(selection, chosen.most_mb * 10**6) if "kernels" in parts else ([], {})
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
    )


def parts_of(job: Job) -> dict[str, Part]:
    """Return the selected parts, in the order of measurement."""
    return {name: part for name, part in PARTS.items() if name in options.parts_of(job.chosen)}


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration of all parts."""
    return sum(part.estimate(job) for part in parts_of(job).values())


def measure_run(job: Job, console: Console) -> Run:
    """Measure all selected parts."""
    findings = Findings(dict(job.missing))
    # What the run and its contenders use themselves is no disturbance.
    before = read_meter([job.cpu_seconds])
    with progress_bar(console, estimated_seconds(job)) as bar:
        try:
            for name, part in parts_of(job).items():
                measure_part(name, part, job, findings, bar)
        # What has been measured is kept: a run takes long, and its reader sees what is missing.
        except KeyboardInterrupt:
            findings.missing[f"{FAILED}: the rest"] = "interrupted"
    return Run(
        date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        machine=describe_machine(job.chosen.machine),
        versions=versions_of(job),
        settings=options.settings(job.chosen),
        name=options.run_name(job.chosen),
        foreign=round(foreign_share(before, read_meter([job.cpu_seconds])), 3),
        **findings.fields(),
    )


def versions_of(job: Job) -> dict[str, str]:
    """Return the versions of the contenders that took part, and of the C compiler."""
    versions = {"python": platform.python_version()}
    for remote in job.contenders.values():
        versions |= remote.versions
    return versions | {"cc": compiler_version() or "none"}


def measure_part(name: str, part: Part, job: Job, findings: Findings, bar: Bar) -> None:
    """Measure one part; after a failure, which is recorded, the other parts follow."""
    try:
        part.measure(job, findings, bar)
    except FAILURES as error:
        findings.missing[f"{FAILED}: {name}"] = str(error)


def estimate_rooflines(job: Job) -> float:
    return ROOFLINE_SECONDS * len(job.threads)


def measure_rooflines(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure the bounds of the machine."""
    for threads in job.threads:
        bar.describe(f"what the machine can do with {threads} thread(s)")
        findings.rooflines[threads] = measure_roofline(threads)
        bar.advance(ROOFLINE_SECONDS)


def estimate_cells(job: Job) -> float:
    return sum(batch.estimated_seconds(job.plan) for batch in job.batches)


def measure_cells(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure all batches, unless gossamer itself does not start."""
    # Another contender that does not start is left out; without gossamer there is nothing to compare.
    if OURS in job.contenders:
        job.contenders[OURS].started()
    for batch in job.batches:
        bar.describe(batch.describe())
        cells = measure_batch(batch, job.contenders, findings.rooflines, job.plan, bar)
        findings.cells += cells
        bar.advance(batch.estimated_seconds(job.plan))


def measure_call_costs(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure the overhead of calls."""
    findings.call_costs = call_overhead.measure_call_costs(bar)


def measure_startups(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure import and command line."""
    findings.startups = startup.measure_startups(bar)


def estimate_compile_times(job: Job) -> float:
    processes = options.compile_processes(job.chosen)
    return compile_time.estimated_seconds(job.chosen.op, processes)


def measure_compile_times(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure the time from script to callable for the selected operators."""
    processes = options.compile_processes(job.chosen)
    findings.compile_times = compile_time.measure_compile_times(job.chosen.op, bar, processes)


def estimate_first_calls(job: Job) -> float:
    return first_calls.estimated_seconds(job.chosen.op, options.compile_processes(job.chosen))


def measure_first_calls(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure the first calls of the selected operators with nothing cached."""
    processes = options.compile_processes(job.chosen)
    findings.first_calls = first_calls.measure_first_calls(job.chosen.op, bar, processes)


def measure_python_shares(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure the compile time of Python, compared with LLVM."""
    findings.python_shares = python_share.measure_python_shares(bar)


def estimate_mini_batches(job: Job) -> float:
    return mini_batches.estimated_seconds(mini_batches.chosen_graphs(job.chosen.matrix))


def measure_mini_batches(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure a process that multiplies many different matrices."""
    graphs = mini_batches.chosen_graphs(job.chosen.matrix)
    findings.mini_batches = mini_batches.measure_mini_batches(graphs, bar)


def estimate_conversions(job: Job) -> float:
    return conversions.estimated_seconds(conversions.chosen_matrices(job.chosen.matrix))


def measure_conversions(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure conversions of formats, compared with SciPy, and the building of formats."""
    matrices = conversions.chosen_matrices(job.chosen.matrix)
    findings.conversion_times = conversions.measure_conversions(matrices, bar)
    findings.format_builds = conversions.measure_builds(bar)


def estimate_programs(job: Job) -> float:
    return programs.estimated_seconds(program_threads(job))


def program_threads(job: Job) -> tuple[int, ...]:
    """Return the chosen numbers of threads, by default one and two."""
    return tuple(job.chosen.threads or (1, 2))


def measure_programs(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure the programs of papers."""
    findings.program_times = programs.measure_programs(program_threads(job), bar)


def choice_cases(job: Job) -> list[choice.Case]:
    """Return the cases in which the choice of a format is measured."""
    chosen = job.chosen
    return choice.cases_of(chosen.op, chosen.features, chosen.dtype, chosen.threads)


def estimate_choices(job: Job) -> float:
    return choice.estimated_seconds(choice.chosen_matrices(job.chosen.matrix), choice_cases(job))


def measure_choices(job: Job, findings: Findings, bar: Bar) -> None:
    """Measure all formats of each matrix, and the choice of one."""
    matrices = choice.chosen_matrices(job.chosen.matrix)
    findings.choice_times = choice.measure_choices(matrices, choice_cases(job), bar)


PARTS = {
    # First, since the cells say which share of the rooflines they reach.
    "roofline": Part(estimate_rooflines, measure_rooflines),
    "kernels": Part(estimate_cells, measure_cells),
    "calls": Part(lambda job: call_overhead.estimated_seconds(), measure_call_costs),
    "startup": Part(lambda job: startup.estimated_seconds(), measure_startups),
    "compile": Part(estimate_compile_times, measure_compile_times),
    "first": Part(estimate_first_calls, measure_first_calls),
    "python": Part(lambda job: python_share.estimated_seconds(), measure_python_shares),
    "batches": Part(estimate_mini_batches, measure_mini_batches),
    "conversions": Part(estimate_conversions, measure_conversions),
    "programs": Part(estimate_programs, measure_programs),
    "choice": Part(estimate_choices, measure_choices),
}
