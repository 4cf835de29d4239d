"""Contenders in processes of their own, so that threads, settings and libraries of one do not disturb
another. Requests travel over a pipe, arrays as files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from benchmarks.contenders import CONTENDERS
from benchmarks.contenders.contender import Contender, UnavailableError
from benchmarks.machine.meter import cpu_seconds_of
from benchmarks.operator_case import CaseFields
from gossamer_support.arrays import Array

REPOSITORY = Path(__file__).resolve().parents[2]
END_SECONDS = 5.0
"""Time that a process may take to end before it is killed."""
SampleRequest: TypeAlias = tuple[str, int, int, int]
"""A case, a number of threads, untimed calls, timed calls."""

ENVIRONMENT = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "NUMBA_", "PYTHON")
"""Beginnings of variables that processes do not inherit."""


def memory_folder() -> str | None:
    """Return a folder in memory, since hundreds of megabytes travel, or None for the default."""
    shared = "/dev/shm"
    return shared if os.path.isdir(shared) else None


class ContenderStart(msgspec.Struct, frozen=True):
    """The command that starts the process of a contender: its interpreter, and the file of a variant."""

    name: str
    python: str = sys.executable
    variants: Path | None = None

    @property
    def contender(self) -> Contender:
        return Contender("variants", ()) if self.variants is not None else CONTENDERS[self.name]

    def command(self) -> list[str]:
        """Return the command."""
        file = [] if self.variants is None else [str(self.variants.resolve())]
        # `-P`: a file of the working folder must not stand in for a module that a library imports.
        return [self.python, "-P", "-m", "benchmarks.harness.worker", self.name, *file]

    def environment(self) -> dict[str, str]:
        """Return the variables: those of this process without settings of libraries, and the contender's."""
        kept = {key: text for key, text in os.environ.items() if not key.startswith(ENVIRONMENT)}
        return {**kept, "PYTHONPATH": str(REPOSITORY), **self.contender.environment}


class Process:
    """A process that answers requests."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self.folder = tempfile.TemporaryDirectory(dir=memory_folder())
        self.errors = Path(self.folder.name, "stderr")
        # A file, not a pipe: nothing reads a pipe while the process works, and a full one would stop it.
        with self.errors.open("w") as errors:
            try:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=environment,
                    text=True,
                    start_new_session=True,  # an interrupt is for this process, which ends the others
                )
            except OSError as error:
                self.folder.cleanup()
                raise UnavailableError(f"{command[0]} does not start: {error}") from None
        # The first answer says whether the contender can be loaded.
        try:
            self.answer()
        except UnavailableError:
            self.close()
            raise

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Return the answer to a request. Raises `UnavailableError` if there is none."""
        assert self.process.stdin is not None
        # The pipe of a process that has ended is broken; `answer` says why it has ended.
        with suppress(OSError):
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Return the next answer. Raises `UnavailableError` if it is an error, or the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            status, reason = self.process.wait(), reason_of(self.errors.read_text())
            raise UnavailableError(
                f"the process of {self.name} ended with status {status}: {reason}"
            )
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise UnavailableError(reply["error"])
        return reply

    def close(self) -> None:
        """End the process and remove its folder."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        # A worker ends at the end of its input.
        with suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


def reason_of(output: str) -> str:
    """Return the error of a traceback, whose message may have further, indented lines.

    >>> lines = ("Traceback:", "  call()", "a.UserError: no such thing", "  in line 3")
    >>> reason_of(chr(10).join(lines))
    'a.UserError: no such thing'
    """
    lines = [line for line in output.splitlines() if line.strip() and not line[0].isspace()]
    return lines[-1] if lines else "it printed nothing"


class Remote:
    """A contender in a process, which is started when it is first needed; `close` ends it. A process that has
    ended by itself is started again after `forget`, since its cases are lost."""

    def __init__(self, start: ContenderStart) -> None:
        self.start = start
        self.contender = start.contender
        self.versions: dict[str, str] = {}
        self.process: Process | None = None
        self.failure_to_start: str | None = None
        self.failure: str | None = None

    def ensure_started(self) -> Process:
        """Return the process. Raises `UnavailableError` if it cannot be started, which is tried once."""
        for failure in (self.failure_to_start, self.failure):
            if failure is not None:
                raise UnavailableError(failure)
        if self.process is None:
            name, command = self.start.name, self.start.command()
            try:
                self.process = Process(name, command, self.start.environment())
            except UnavailableError as error:
                self.failure_to_start = str(error)
                raise
            self.versions = self.process.ask("versions")["versions"]
        return self.process

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Return the answer to a request; a process that does not answer is given up."""
        process = self.ensure_started()
        try:
            return process.ask(do, **request)
        except UnavailableError as error:
            self.failure = str(error)
            self.close()
            raise

    def prepare(
        self, key: str, folder: Path, description: CaseFields, threads: Sequence[int]
    ) -> dict[int, str]:
        """Prepare a case for several numbers of threads; returns why some are impossible."""
        skipped = self.ask(
            "prepare", key=key, folder=str(folder), description=description, threads=list(threads)
        )["skipped"]
        return {int(count): reason for count, reason in skipped.items()}

    def conversion(self, key: str, threads: int) -> float | None:
        """Return the seconds in which the matrix of a case was converted from CSR, before all calls."""
        seconds: float | None = self.ask("conversion", key=key, threads=threads)["seconds"]
        return seconds

    def result(self, key: str, threads: int) -> Array:
        """Return the result of a call."""
        path = Path(self.ensure_started().folder.name, "result.npy")
        self.ask("result", key=key, threads=threads, file=str(path))
        result: Array = np.load(path)
        # The folder is in memory, which the next calls need.
        path.unlink()
        return result

    def time(self, samples: Sequence[SampleRequest]) -> list[float]:
        """Return the seconds per call of each sample."""
        seconds: list[float] = self.ask("time", samples=samples)["seconds"]
        return seconds

    def forget(self) -> None:
        """Free all cases."""
        # A process that was lost may start again: its cases are freed in any event.
        self.failure = None
        if self.process is not None:
            self.ask("forget")

    def cpu_seconds(self) -> float:
        """Return the CPU time that the process has used; 0 if there is none."""
        return 0.0 if self.process is None else cpu_seconds_of(self.process.process.pid)

    def close(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.close()
            self.process = None
