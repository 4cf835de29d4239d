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
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import gossamer as gs
from benchmarks.harness.progress import Bar
from benchmarks.parts.fresh_process import USER, ProcessError
from benchmarks.records import ProgramTime
from examples import EXAMPLES
from examples.example import Call, Example, UnavailableError

TURNS = 5
PAUSE_SECONDS = 0.1
SAMPLE_SECONDS = 0.02
SECONDS_PER_CASE = 15.0
"""Used only to estimate the duration."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def estimated_seconds(threads: Sequence[int]) -> float:
    """Return the estimated duration."""
    return SECONDS_PER_CASE * len(threads) * sum(len(one.datasets) for one in EXAMPLES.values())


def measure_programs(threads: Sequence[int], bar: Bar) -> tuple[ProgramTime, ...]:
    """Measure all examples with their data sets, those that are available."""
    times: list[ProgramTime] = []
    for count in threads:
        for example in EXAMPLES.values():
            for case in example.datasets:
                bar.describe(f"{example.name}, {case}, {count} thread(s)")
                times += measure_case(example, case, threads=count)
                bar.advance(SECONDS_PER_CASE)
    return tuple(times)


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
            median_ms=float(f"{statistics.median(found):.4g}"),
            prepare_seconds=round(ready[name]["prepare_seconds"], 3),
            relative_error=float(f"{ready[name]['relative_error']:.2g}"),
        )
        for name, found in samples.items()
    ]


def start(
    stack: ExitStack, example: str, case: str, name: str, threads: int
) -> subprocess.Popen[str]:
    """Start the process of a program or baseline, which prepares it; the stack ends it."""
    environment = {**os.environ, **USER, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    command = [sys.executable, "-m", "benchmarks.parts.programs", example, case, name, str(threads)]
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
    found: dict[str, Any] = json.loads(line)
    return found


# --- in the process of a program


def main(example: str, case: str, name: str, threads: str) -> None:
    """Prepare and verify a program or baseline, and take a sample for each line of the input."""
    gs.set_num_threads(int(threads))
    try:
        call, prepared = prepare(EXAMPLES[example], case, name)
    except UnavailableError as error:
        print(json.dumps({"unavailable": str(error)}), flush=True)
        return
    print(json.dumps(prepared), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"ms": sample(call) * 1e3}), flush=True)


def prepare(example: Example, case: str, name: str) -> tuple[Call, dict[str, float]]:
    """Return a verified call, with the seconds of its preparation and its error.

    Raises `UnavailableError`, and `ValueError` for a wrong result.
    """
    inputs = {**example.cases, **example.datasets}[case]()
    start = time.perf_counter()
    call = {**example.programs, **example.baselines}[name](inputs)
    seconds = time.perf_counter() - start
    error = example.relative_error(inputs, call())
    if not error <= 1:
        raise ValueError(f"The error of '{name}' is {error:.2g} times the allowed one.")
    return call, {"prepare_seconds": seconds, "relative_error": error}


def sample(call: Call) -> float:
    """Return the mean seconds of a call."""
    call()
    count, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < SAMPLE_SECONDS:
        call()
        count += 1
    return elapsed / count


if __name__ == "__main__":
    main(*sys.argv[1:])
