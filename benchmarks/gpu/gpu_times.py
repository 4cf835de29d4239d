"""Times of contenders on a GPU, each in a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.contenders.contender import UnavailableError
from benchmarks.gpu.gpu_cases import GpuCase
from benchmarks.gpu.gpu_contenders import GPU_CONTENDERS
from benchmarks.gpu.gpu_records import GpuTime
from benchmarks.harness import process as harness
from benchmarks.harness.process import Process, memory_folder
from benchmarks.operator_case import write_case

THREADS = 1
"""The key of requests has a number of threads, which a GPU has not."""
UNTIMED = 3


class GpuContenders:
    """The processes of contenders, which are started when they are needed and after a failure."""

    def __init__(self, target: str, pythons: Mapping[str, str], stack: ExitStack) -> None:
        self._target, self._pythons, self._stack = target, pythons, stack
        self._processes: dict[str, Process] = {}
        self._failures: dict[str, str] = {}

    def process(self, name: str) -> Process:
        """Return the process of a contender; raise `UnavailableError` if it cannot be started, which is tried
        once."""
        if name in self._failures:
            raise UnavailableError(self._failures[name])
        if name not in self._processes:
            python = self._pythons.get(name, sys.executable)
            command = [python, "-P", "-m", "benchmarks.gpu.gpu_worker", name, self._target]
            environment = {**os.environ, "PYTHONPATH": str(harness.REPOSITORY)}
            try:
                process = Process(name, command, environment)
            except UnavailableError as error:
                self._failures[name] = str(error)
                raise
            self._processes[name] = self._stack.enter_context(closing(process))
        return self._processes[name]

    def forget(self, name: str) -> None:
        """Start the process of a contender anew at the next case."""
        self._processes.pop(name, None)


def measured_times(
    cases: Iterator[GpuCase],
    target: str,
    *,
    contenders: Sequence[str] = tuple(GPU_CONTENDERS),
    pythons: Mapping[str, str],
    calls: int,
) -> Iterator[GpuTime]:
    """Yield the times of each case."""
    with ExitStack() as stack:
        processes = GpuContenders(target, pythons, stack)
        for number, case in enumerate(cases):
            with TemporaryDirectory(dir=memory_folder()) as name:
                yield _measure_case(case, str(number), Path(name), processes, contenders, calls)


def _measure_case(
    case: GpuCase,
    key: str,
    folder: Path,
    processes: GpuContenders,
    contenders: Sequence[str],
    calls: int,
) -> GpuTime:
    description = write_case(case.case, folder)
    medians: dict[str, float] = {}
    missing: dict[str, str] = {}
    errors: dict[str, float] = {}
    digest = None
    for name in contenders:
        try:
            process = processes.process(name)
            request = {"folder": str(folder), "description": description, "threads": [THREADS]}
            skipped = process.ask("prepare", key=key, **request)["skipped"]
            if skipped:
                missing[name] = next(iter(skipped.values()))
                continue
            path = folder / "result.npy"
            answer = process.ask("result", key=key, threads=THREADS, file=str(path))
            digest = digest or answer["digest"]
            errors[name] = case.error(np.load(path))
            samples = [(key, THREADS, min(UNTIMED, calls), calls)]
            (seconds,) = process.ask("time", samples=samples)["seconds"]
            medians[name] = 1e3 * seconds
            process.ask("forget")
        except UnavailableError as error:
            missing[name] = str(error)
            processes.forget(name)
    return GpuTime(
        op=case.case.op,
        matrix=case.matrix,
        shape=case.shape,
        nnz=case.nnz,
        features=case.features,
        dtype=case.dtype,
        medians=medians,
        missing=missing,
        errors=errors,
        digest=digest,
    )
