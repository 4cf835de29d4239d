"""Correctness on a GPU, in processes of their own: matrix instructions, the suite of the testkit with its
corpus, and random programs.

A program that ends its process, or loses the context of the GPU, is wrong; the next process goes on after it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

from benchmarks.gpu.gpu_records import CORRECT, GpuCheck
from benchmarks.harness import process as harness
from benchmarks.harness.process import reason_of

LOST = ("[cuda.context]", "[cuda.fault]")
"""The ends of messages of errors after which a process cannot use the GPU."""
CHECK_SECONDS = 600
"""For all programs of a process."""


def instruction_checks(target: str, count: int) -> Iterator[GpuCheck]:
    """Yield the results of matrix instructions."""
    command = ["-m", "benchmarks.gpu.instruction_checks", target]
    yield from _checks("instructions", command, (), count)


def warpgroup_checks(target: str, count: int) -> Iterator[GpuCheck]:
    """Yield the results of instructions of warpgroups."""
    command = ["-m", "benchmarks.gpu.warpgroup_checks", target]
    yield from _checks("warpgroups", command, (), count)


def suite_checks(suite: str, target: str, count: int) -> Iterator[GpuCheck]:
    """Yield the results of tests of the testkit: those of its corpus, or all others."""
    command = ["-m", "benchmarks.gpu.suite_checks", suite, target]
    yield from _checks(suite, command, (), count)


def fuzzed_checks(target: str, count: int, seed: str) -> Iterator[GpuCheck]:
    """Yield the results of random programs."""
    command = ["-m", "tests.fuzzing.commands.on_target", target]
    yield from _checks("fuzzed", command, (seed,), count)


def _checks(
    suite: str, command: Sequence[str], last: Sequence[str], count: int
) -> Iterator[GpuCheck]:
    done = 0
    while done < count:
        numbers = (str(done), str(count - done))
        ended, error = True, ""
        for check, error in _process_checks(suite, [*command, *numbers, *last]):
            if check is None:
                ended = False
                break
            done += 1
            yield check
            if check.is_wrong and any(mark in check.outcome for mark in LOST):
                ended = False
                error = ""
                break
        if ended:
            return
        if error:
            yield GpuCheck(suite, f"number {done}", f"the process ended: {error}", is_wrong=True)
            done += 1


def _process_checks(suite: str, arguments: Sequence[str]) -> Iterator[tuple[GpuCheck | None, str]]:
    """Yield the checks of a process; at last None and an error, if it fails."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=harness.REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            yield _check_of(suite, json.loads(line)), ""
        _, errors = process.communicate(timeout=CHECK_SECONDS)
        if process.returncode:
            yield None, reason_of(errors)
    finally:
        process.kill()
        process.communicate()


def _check_of(suite: str, row: dict[str, str | None]) -> GpuCheck:
    name, wrong, skipped = str(row["name"]), row["wrong"], row["skipped"]
    if wrong is not None:
        return GpuCheck(suite, name, wrong, is_wrong=True)
    return GpuCheck(suite, name, CORRECT if skipped is None else f"not run: {skipped}")
