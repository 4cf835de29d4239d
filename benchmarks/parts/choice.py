"""The format that `gossamer.prepare` chooses, compared with the other formats of the library.

For each matrix, operator and number of features, the matrix is stored in every format in which the library
computes, and in the chosen one. Calls take turns, and the time of a format is the median over rounds of its
part of the round. With one thread it is the time of the processor.

A process has its arrays at addresses of its own, which change times by a tenth. So a case that misses a goal
is measured in further processes, and the one with the median ratio counts. A miss that is not noise remains.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from benchmarks.gossamer_operators import takes_vectors
from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.matrices import BLOCKS, IN_CSR, available
from benchmarks.part import RunPart, Series
from benchmarks.parts.processes.choice import ProductCase
from benchmarks.parts.processes.fresh_process import run_fresh
from benchmarks.text_tables import Sheet
from gossamer.operators import product_names

CHOICE_OF_BEST, CHOICE_OF_CSR = 0.9, 0.95
"""Goals for the time of the fastest format, and of CSR, divided by that of the chosen format, in each
case."""

CHOICE_FEATURES, THREADS = (32, 128, 512), (1, 2)
"""The numbers of features and of threads that are measured unless others are chosen."""

FURTHER_PROCESSES = 2
"""The further processes in which a case is measured that misses a goal. With the first one they are odd in
number, so that one of them has the median."""

ESTIMATED_SECONDS_PER_CASE = 1.0


class ChoiceTime(msgspec.Struct, frozen=True):
    """Milliseconds of an operator with a matrix in each format, by the text of the format, the one that the
    model of `gossamer.prepare` chose, the cycles that the model expected, and the number of processes that
    measured the case. The times are those of the process with the median ratio."""

    matrix: str
    op: str
    features: int
    dtype: str
    threads: int
    chosen: str
    expected_cycles: dict[str, float]
    times_ms: dict[str, float]
    processes: int = 1

    @property
    def case(self) -> ProductCase:
        return ProductCase(self.op, self.features, self.dtype, self.threads)

    @property
    def best(self) -> str:
        """The fastest format."""
        return min(self.times_ms, key=self.times_ms.__getitem__)

    @property
    def best_ratio(self) -> float:
        """The time of the fastest format over that of the chosen one."""
        return self.times_ms[self.best] / self.times_ms[self.chosen]

    @property
    def csr_ratio(self) -> float:
        """The time of CSR over that of the chosen format."""
        return self.times_ms["csr"] / self.times_ms[self.chosen]

    @property
    def is_met(self) -> bool:
        """True if the choice meets both goals."""
        return self.best_ratio >= CHOICE_OF_BEST and self.csr_ratio >= CHOICE_OF_CSR


def matrices_of_choice(matrices: Sequence[str] | None) -> tuple[str, ...]:
    """Return the matrices to measure, by default all: also those that other parts measure if they are named.

    >>> matrices_of_choice(["cora", "window_4096"])
    ('cora',)
    """
    all_names = (*IN_CSR, *BLOCKS)
    return all_names if matrices is None else tuple(name for name in all_names if name in matrices)


def selected_cases(
    ops: Sequence[str],
    features: Sequence[int] | None,
    dtypes: Sequence[str] | None,
    threads: Sequence[int] | None,
) -> list[ProductCase]:
    """Return the cases to measure for each matrix; by default float32 on one thread and on two.

    >>> [case.features for case in selected_cases(["spmm", "spmv"], None, None, [2])]
    [32, 128, 512, 1]
    """
    sizes = tuple(features or CHOICE_FEATURES)
    return [
        ProductCase(op, size, dtype, count)
        for count in threads or THREADS
        for dtype in dtypes or ("float32",)
        for op in ops
        if op in product_names()
        for size in ((1,) if takes_vectors(op) else sizes)
    ]


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    cases = len(cases_of_job(job))
    return ESTIMATED_SECONDS_PER_CASE * len(matrices_of_choice(job.chosen.matrix)) * cases


def measure_choices(job: Job, bar: Bar) -> Iterator[ChoiceTime]:
    """Measure all formats of each available matrix and the choice of one, each matrix in a fresh process."""
    cases = cases_of_job(job)
    for name in available(matrices_of_choice(job.chosen.matrix)):
        bar.describe(f"formats of {name}")
        times = time_in_process(name, cases)
        missed = [one.case for one in times if not one.is_met]
        bar.details(f"formats of {name}: again {len(missed)} of {len(times)}")
        further = [time_in_process(name, missed) for _ in range(FURTHER_PROCESSES if missed else 0)]
        yield from with_further_processes(times, further)
        bar.advance(ESTIMATED_SECONDS_PER_CASE * len(cases))


def time_in_process(name: str, cases: Sequence[ProductCase]) -> list[ChoiceTime]:
    """Return the times of cases of a matrix in a fresh process."""
    arguments = ("-m", "benchmarks.parts.processes.choice", name, json.dumps(cases))
    return [ChoiceTime(**one) for one in json.loads(run_fresh(sys.executable, *arguments))]


def with_further_processes(
    first_times: Sequence[ChoiceTime], further: Sequence[Sequence[ChoiceTime]]
) -> list[ChoiceTime]:
    """Return for each case the times of the process with the median ratio to the best format, among all that
    measured it."""
    chosen = []
    for one in first_times:
        again = [two for times in further for two in times if two.case == one.case]
        measured = sorted((one, *again), key=lambda time: time.best_ratio)
        median = measured[len(measured) // 2]
        chosen.append(replace(median, processes=len(measured)))
    return chosen


def cases_of_job(job: Job) -> list[ProductCase]:
    """Return the cases that the options select."""
    chosen = job.chosen
    return selected_cases(chosen.op, chosen.features, chosen.dtype, chosen.threads)


def choices_sheet(times: Sequence[ChoiceTime]) -> Sheet:
    """Return, for each case, the times of CSR, of the best format and of the chosen one, and their ratios."""
    columns = ("matrix", "best format", "chosen", "op", "K", "dtype", "thr")
    figures = ("CSR ms", "best ms", "chosen ms", "best / chosen", "CSR / chosen", "processes", "")
    best, csr = min(one.best_ratio for one in times), min(one.csr_ratio for one in times)
    met = sum(one.is_met for one in times)
    verdict = "met" if met == len(times) else f"MISSED by {len(times) - met} of {len(times)}"
    sheet = Sheet(
        "the chosen format: time of the fastest format / time of the chosen one",
        (*columns, *figures),
        words=3,
        note=f"least of the best {best:.2f} (wanted {CHOICE_OF_BEST:.2f}), of CSR {csr:.2f} (wanted "
        f"{CHOICE_OF_CSR:.2f}): {verdict}",
    )
    for one in times:
        case = (one.matrix, one.best, one.chosen, *case_of(one))
        ms = (one.times_ms[name] for name in ("csr", one.best, one.chosen))
        ratios = (f"{one.best_ratio:.2f}", f"{one.csr_ratio:.2f}", str(one.processes))
        verdict_of_case = "" if one.is_met else "BELOW"
        sheet.rows.append((*case, *(f"{each:.3g}" for each in ms), *ratios, verdict_of_case))
    return sheet


def format_times_sheet(times: Sequence[ChoiceTime]) -> Sheet:
    """Return the times of all formats for each case."""
    formats = list(dict.fromkeys(name for one in times for name in one.times_ms))
    sheet = Sheet("ms of each format", ("matrix", "op", "K", "dtype", "thr", *formats))
    for one in times:
        ms = (f"{one.times_ms[name]:.3g}" if name in one.times_ms else "-" for name in formats)
        sheet.rows.append((one.matrix, *case_of(one), *ms))
    return sheet


def case_of(one: ChoiceTime) -> tuple[str, ...]:
    """Return operator, features, dtype and threads in words."""
    return one.op, str(one.features), one.dtype, str(one.threads)


PART = RunPart(
    "choice",
    "the format that `gossamer.prepare` chooses for each matrix, on one thread and on two, compared with the "
    "times of all formats of the library",
    (Series("choice_times", ChoiceTime, choices_sheet, format_times_sheet),),
    estimated_seconds,
    measure_choices,
    options=("op", "matrix", "features", "dtype", "threads"),
)
