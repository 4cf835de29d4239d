"""The programs of `examples`, compared with what a user would do without gossamer.

Each program and baseline is prepared and verified in a process of its own, with its own number of threads.
They take turns: in a turn, each takes a sample of at least 20 ms after a call that is not timed. There is a
pause before each sample, because threads of other libraries spin for a while after a call.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.part import RunPart, Series
from benchmarks.parts.processes.fresh_process import USER, ProcessError
from benchmarks.text_tables import Sheet
from examples import EXAMPLES
from examples.example import Example

TURNS = 5
PAUSE_SECONDS = 0.1
SECONDS_PER_CASE = 15.0
"""Used only to estimate the duration."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ProgramTime(msgspec.Struct, frozen=True):
    """Milliseconds of a program of a paper on real inputs: in one of our formats (`is_ours`), or without
    gossamer. `relative_error` is that of the result over the allowed one."""

    program: str
    case: str
    what: str
    is_ours: bool
    threads: int
    median_ms: float
    prepare_seconds: float
    relative_error: float


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    cases = sum(len(one.datasets) for one in EXAMPLES.values())
    return SECONDS_PER_CASE * len(chosen_threads(job)) * cases


def chosen_threads(job: Job) -> tuple[int, ...]:
    """Return the chosen numbers of threads, by default one and two."""
    return tuple(job.chosen.threads or (1, 2))


def measure_programs(job: Job, bar: Bar) -> Iterator[ProgramTime]:
    """Measure all examples with their data sets, those that are available."""
    for count in chosen_threads(job):
        for example in EXAMPLES.values():
            for case in example.datasets:
                bar.describe(f"{example.name}, {case}, {count} thread(s)")
                yield from measure_case(example, case, threads=count)
                bar.advance(SECONDS_PER_CASE)


def measure_case(
    example: Example, case: str, *, threads: int, turns: int = TURNS
) -> list[ProgramTime]:
    """Measure all programs and baselines of a case that are available."""
    names = (*example.programs, *example.baselines)
    with ExitStack() as stack:
        started = {name: start(stack, example.name, case, name, threads) for name in names}
        ready = {name: answer(process) for name, process in started.items()}
        taking_part = {name: started[name] for name in names if "unavailable" not in ready[name]}
        samples: dict[str, list[float]] = {name: [] for name in taking_part}
        for _ in range(turns):
            for name, process in taking_part.items():
                time.sleep(PAUSE_SECONDS)
                samples[name].append(ask(process)["ms"])
    return [
        ProgramTime(
            example.name,
            case,
            name,
            is_ours=name in example.programs,
            threads=threads,
            median_ms=float(f"{statistics.median(times):.4g}"),
            prepare_seconds=round(ready[name]["prepare_seconds"], 3),
            relative_error=float(f"{ready[name]['relative_error']:.2g}"),
        )
        for name, times in samples.items()
    ]


def start(
    stack: ExitStack, example: str, case: str, name: str, threads: int
) -> subprocess.Popen[str]:
    """Start the process of a program or baseline, which prepares it; the stack ends it."""
    environment = {**os.environ, **USER, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    command = [
        sys.executable,
        "-m",
        "benchmarks.parts.processes.programs",
        example,
        case,
        name,
        str(threads),
    ]
    process = subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


def ask(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Ask for a sample, and return the answer."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return answer(process)


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next answer of a process. Raises `ProcessError` if it has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ProcessError(f"{process.args!r} ended with status {process.wait()}")
    reply: dict[str, Any] = json.loads(line)
    return reply


def programs_sheet(times: Sequence[ProgramTime]) -> Sheet:
    """Return, for each case, the times of our programs and of the fastest baseline, and their ratio."""
    columns = (
        "program",
        "case",
        "thr",
        "ours",
        "ms",
        "fastest other",
        "ms",
        "ratio",
        "of the best",
    )
    sheet = Sheet(
        "programs of papers: time of the fastest other / time of gossamer", columns, words=2
    )
    for case in dict.fromkeys((one.program, one.case, one.threads) for one in times):
        here = [one for one in times if (one.program, one.case, one.threads) == case]
        sheet.rows.extend(_rows_of_case(here))
    return sheet


def _rows_of_case(times: Sequence[ProgramTime]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each of our programs, the fastest first, if there are baselines."""
    ours = sorted((one for one in times if one.is_ours), key=lambda one: one.median_ms)
    others = [one for one in times if not one.is_ours]
    if not others:
        return
    other = min(others, key=lambda one: one.median_ms)
    for one in ours:
        yield (
            one.program,
            one.case,
            str(one.threads),
            one.what,
            f"{one.median_ms:.3g}",
            other.what,
            f"{other.median_ms:.3g}",
            f"{other.median_ms / one.median_ms:.2f}",
            f"{ours[0].median_ms / one.median_ms:.2f}",
        )


def program_times_sheet(times: Sequence[ProgramTime]) -> Sheet:
    """Return the times of all programs and baselines, with the seconds of their preparation."""
    columns = ("program", "case", "contender", "thr", "ms", "prepare s")
    sheet = Sheet("programs of papers: median ms", columns, words=3)
    for one in times:
        figures = (str(one.threads), f"{one.median_ms:.3g}", f"{one.prepare_seconds:.2f}")
        sheet.rows.append((one.program, one.case, one.what, *figures))
    return sheet


PART = RunPart(
    "programs",
    "the programs of `examples` compared with SciPy, NumPy and PyTorch, each in a process of its own",
    (Series("program_times", ProgramTime, programs_sheet, program_times_sheet),),
    estimated_seconds,
    measure_programs,
    options=("threads",),
)
