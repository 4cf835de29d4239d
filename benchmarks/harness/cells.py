"""Measures a batch of problems: all contenders prepare them, are verified, and are then timed in turns."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchmarks.contenders.contender import UnavailableError
from benchmarks.harness.process import Remote, memory_folder
from benchmarks.harness.progress import Bar
from benchmarks.harness.rounds import (
    CaseAndThreads,
    Samples,
    SamplingPlan,
    measure_again,
    measure_rounds,
)
from benchmarks.harness.tasks import Batch, Task
from benchmarks.machine.machine_description import cache_share
from benchmarks.machine.roofline import Roofline
from benchmarks.operator_case import write_case
from benchmarks.operators.problem import Problem, Work
from benchmarks.records import Cell, Figure
from gossamer_support.arrays import Array


class WrongResultError(Exception):
    """A contender's result differs from the oracle's."""


class MachineBounds(msgspec.Struct, frozen=True):
    """Bounds of the machine for a problem: bytes per second, operations per second."""

    bandwidth: float
    peak: float

    def seconds(self, work: Work) -> float:
        """Return the shortest time in which the machine can do `work`."""
        return max(work.bytes / self.bandwidth, work.operations / self.peak)


class Draft(msgspec.Struct, frozen=True):
    """A cell before its figures: its description, errors of correct results with the seconds of conversions,
    messages about wrong ones, and why contenders do not take part."""

    task: Task
    work: Work
    working_bytes: int
    threads: int
    errors: dict[str, float] = msgspec.field(default_factory=dict)
    conversions: dict[str, float | None] = msgspec.field(default_factory=dict)
    wrong: dict[str, str] = msgspec.field(default_factory=dict)
    skipped: dict[str, str] = msgspec.field(default_factory=dict)


def measure_batch(
    batch: Batch,
    contenders: Mapping[str, Remote],
    rooflines: Mapping[int, Roofline],
    plan: SamplingPlan,
    bar: Bar,
    is_missed: Callable[[Cell], bool] = lambda cell: False,
) -> list[Cell]:
    """Time contenders with correct results, and record why others were not timed. Cells that are missed are
    measured in further rounds, whose samples count together with the first ones."""
    drafts: dict[CaseAndThreads, Draft] = {}
    for number, task in enumerate(batch.tasks):
        drafts |= prepare_task(str(number), task, contenders, bar)
    entries = _timed_entries(drafts, contenders)
    taking_part = {name: contenders[name] for name in contenders if name in entries}
    text = batch.describe()

    def says(step: str) -> None:
        bar.details(f"{text}: {step}")

    def cells(entries: Collection[CaseAndThreads]) -> dict[CaseAndThreads, Cell]:
        return {
            (key, threads): cell_of(
                key, drafts[key, threads], contenders, rooflines.get(threads), samples
            )
            for key, threads in entries
        }

    samples = measure_rounds(taking_part, entries, plan, says)
    measured = cells(drafts)
    missed = [entry for entry, cell in measured.items() if is_missed(cell)]
    if missed:
        measure_again(taking_part, samples, missed, plan, lambda step: says(f"again, {step}"))
        measured |= {
            entry: replace(cell, is_measured_again=True) for entry, cell in cells(missed).items()
        }
    for remote in contenders.values():
        with suppress(UnavailableError):  # then its process has ended
            remote.forget()
    return list(measured.values())


def timed_threads(remote: Remote, task: Task) -> tuple[int, ...]:
    """Return the numbers of threads with which a contender is timed: one of them if it has no threads."""
    return task.threads if remote.contender.threaded else task.threads[:1]


def prepare_task(
    key: str, task: Task, contenders: Mapping[str, Remote], bar: Bar
) -> dict[CaseAndThreads, Draft]:
    """Let all contenders of a task prepare it, and verify their results."""
    problem = task.problem()
    work, size = problem.min_work(), problem.working_bytes()
    drafts = {(key, count): Draft(task, work, size, count) for count in task.threads}
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        description = write_case(problem.case(), Path(folder))
        for name in task.contenders:
            bar.details(f"{task.describe()}: {name} prepares")
            counts = timed_threads(contenders[name], task)
            try:
                skipped = contenders[name].prepare(key, Path(folder), description, counts)
            except UnavailableError as error:
                skipped = dict.fromkeys(counts, str(error))
            for count, reason in skipped.items():
                drafts[key, count].skipped[name] = reason
    for name in task.contenders:
        bar.details(f"{task.describe()}: {name} is verified")
        counts = timed_threads(contenders[name], task)
        for count in counts:
            verify_result(problem, drafts[key, count], contenders[name], key)
        for count in set(task.threads) - set(counts):
            copy(name, drafts[key, counts[0]], drafts[key, count])
    return drafts


def verify_result(problem: Problem, draft: Draft, remote: Remote, key: str) -> None:
    """Add the error of a contender's result to a draft, or the message that it is wrong."""
    name = remote.start.name
    if name in draft.skipped:
        return
    try:
        error = error_of(problem, name, remote.result(key, draft.threads))
        draft.conversions[name] = remote.conversion(key, draft.threads)
        draft.errors[name] = error
    except WrongResultError as error:
        draft.wrong[name] = str(error)
    except UnavailableError as error:
        draft.skipped[name] = str(error)


def copy(name: str, source: Draft, target: Draft) -> None:
    """Copy the findings about a contender."""
    if name in source.errors:
        target.errors[name] = source.errors[name]
        target.conversions[name] = source.conversions[name]
    for there, here in ((source.wrong, target.wrong), (source.skipped, target.skipped)):
        if name in there:
            here[name] = there[name]


def error_of(problem: Problem, name: str, result: Array) -> float:
    """Return the error of a result. Raises `WrongResultError` if it exceeds rounding."""
    expected = problem.result_shape()
    if result.shape != expected or result.dtype != problem.dtype:
        raise WrongResultError(
            f"{name} gave {result.dtype} {result.shape} on {problem.op} {problem.matrix.name}; "
            f"expected {problem.dtype} {expected}"
        )
    error, allowed = problem.relative_error(result), problem.allowed_error()
    # So, because an error of NaN is not greater than anything.
    if not error <= allowed:
        raise WrongResultError(
            f"{name} is wrong on {problem.op} {problem.matrix.name} with {problem.features} "
            f"features: relative error {error:.2g}, {allowed:.2g} allowed"
        )
    return error


def _timed_entries(
    drafts: Mapping[CaseAndThreads, Draft], contenders: Mapping[str, Remote]
) -> dict[str, list[CaseAndThreads]]:
    """Return the cases with numbers of threads for which each contender is timed."""
    entries: dict[str, list[CaseAndThreads]] = {}
    # numbers of threads change as rarely as possible: some libraries start threads again
    for entry in sorted(drafts, key=lambda entry: entry[1]):
        for name in drafts[entry].errors:
            if entry[1] in timed_threads(contenders[name], drafts[entry].task):
                entries.setdefault(name, []).append(entry)
    return entries


def cell_of(
    key: str,
    draft: Draft,
    contenders: Mapping[str, Remote],
    roofline: Roofline | None,
    samples: Samples,
) -> Cell:
    """Return the cell of an entry of a batch."""
    task, work = draft.task, draft.work
    bounds = None if roofline is None else roofline_bounds(roofline, work, task.dtype)
    figures, is_disturbed = _figures_of(key, draft, contenders, bounds, samples)
    rows, columns = task.matrix.csr.shape
    return Cell(
        op=task.op,
        matrix=task.matrix.name,
        kind=task.matrix.kind,
        shape=(rows, columns),
        nnz=task.matrix.csr.nnz,
        features=task.features,
        dtype=task.dtype,
        threads=draft.threads,
        least_bytes=work.bytes,
        operations=work.operations,
        working_bytes=draft.working_bytes,
        cache_bytes=cache_share(draft.threads),
        bound_ms=None if bounds is None else 1e3 * bounds.seconds(work),
        figures=figures,
        skipped=draft.skipped,
        wrong=draft.wrong,
        is_disturbed=is_disturbed,
    )


def _figures_of(
    key: str,
    draft: Draft,
    contenders: Mapping[str, Remote],
    bounds: MachineBounds | None,
    samples: Samples,
) -> tuple[dict[str, Figure], bool]:
    """Return the figures of the contenders with correct results, and whether other processes disturbed the
    samples; contenders that have ended are skipped."""
    figures, is_disturbed = {}, False
    for name, error in draft.errors.items():
        counts = timed_threads(contenders[name], draft.task)
        threads = draft.threads if draft.threads in counts else counts[0]
        # Its samples before the end are not kept: the cell would compare fewer rounds.
        if name in samples.ended:
            draft.skipped[name] = samples.ended[name]
            continue
        seconds, disturbed = samples.choose_samples(name, (key, threads))
        is_disturbed |= disturbed
        timed = figure(seconds, error, draft.work, bounds)
        figures[name] = replace(timed, conversion_ms=_conversion_ms(draft.conversions[name]))
    return figures, is_disturbed


def roofline_bounds(roofline: Roofline, work: Work, dtype: str) -> MachineBounds:
    """Return the bandwidth at the size of the touched working set, and the peak of the dtype."""
    return MachineBounds(
        1e9 * roofline.gb_per_s(work.bytes),
        1e9 * roofline.gflop_per_s[dtype],
    )


def figure(seconds: list[float], error: float, work: Work, bounds: MachineBounds | None) -> Figure:
    """Return a contender's times and its share of the machine's bounds."""
    median = statistics.median(seconds)
    return Figure(
        median_ms=in_ms(median),
        max_rel_error=float(f"{error:.3g}"),
        of_bandwidth=None if bounds is None else share(work.bytes / median / bounds.bandwidth),
        of_peak=None if bounds is None else share(work.operations / median / bounds.peak),
    )


def _conversion_ms(seconds: float | None) -> float | None:
    return None if seconds is None else in_ms(seconds)


def share(value: float) -> float:
    """Return a share with four digits."""
    return float(f"{value:.4g}")


def in_ms(seconds: float) -> float:
    """Return milliseconds with four digits.

    >>> in_ms(0.00123456)
    1.235
    """
    return float(f"{1e3 * seconds:.4g}")
