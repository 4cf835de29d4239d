"""PyTorch, in a separate process and environment, since it has its own OpenMP and MKL.

The process takes its samples in the same rounds as the other contenders. Products write to a given
output: `addmm` and `addmv` with beta = 0, for CSR and BSR, are faster than `sparse.mm`;
`sampled_addmm` works in place. `--torch-python` or `GOSSAMER_BENCH_TORCH` gives the interpreter of the
environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.rounds import Timed
from benchmarks.operators.bsr_spmm import BsrSpmm
from benchmarks.operators.problem import Array, Problem
from benchmarks.peers.peer import Prepared, UnavailableError

WORKER = Path(__file__).with_name("torch_worker.py")
VARIABLE = "GOSSAMER_BENCH_TORCH"


class Process:
    """The worker process, which answers requests."""

    def __init__(self, python: str, worker: Path = WORKER) -> None:
        shared = "/dev/shm"  # some hundred megabytes travel: rather not over a disk
        self.folder = tempfile.TemporaryDirectory(dir=shared if os.path.isdir(shared) else None)
        self.errors = Path(self.folder.name, "stderr")
        with self.errors.open("w") as errors:
            try:
                self.process = subprocess.Popen(
                    [python, "-P", str(worker)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    start_new_session=True,
                )
            except OSError as error:
                self.folder.cleanup()
                raise UnavailableError(f"{python} does not start: {error}") from None

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Returns the answer to a request. Raises `UnavailableError` if there is none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
            answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        except (OSError, json.JSONDecodeError):
            said = self.errors.read_text().strip().splitlines() or ["it said nothing"]
            raise UnavailableError(f"the process with torch ended: {said[-1]}") from None
        if "error" in answer:
            raise UnavailableError(f"torch does not do this: {answer['error']}")
        return answer

    def clock(self) -> float:
        """CPU seconds that the process has used."""
        return float(self.ask("clock")["seconds"])

    def seconds(self, calls: int) -> float:
        """Seconds per call over so many calls."""
        return float(self.ask("sample", calls=calls)["seconds"])

    def result(self) -> Array:
        """The result of the last call."""
        path = Path(self.folder.name, "result.npy")
        self.ask("result", file=str(path))
        result: Array = np.load(path)
        path.unlink()
        return result

    def close(self) -> None:
        """Ends the process and removes its folder."""
        self.process.communicate()
        self.folder.cleanup()


class Torch:
    """Starts the process when it is first needed; `close` ends it."""

    def __init__(self, python: str | None = None, *, worker: Path = WORKER) -> None:
        self.python = python or os.environ.get(VARIABLE, "")
        self.worker = worker
        self.version: str | None = None
        self.process: Process | None = None
        self.loaded: Problem | None = None

    def prepare(self, problem: Problem, threads: int) -> Prepared:
        """Prepares the problem in the other process; it is sent once for all numbers of threads."""
        process = self.started()
        if problem is not self.loaded:
            self.loaded = None
            process.ask("threads", count=threads)
            send(process, problem)
            self.loaded = problem
        activate = partial(process.ask, "threads", count=threads)
        return Prepared(Timed(process.seconds, activate, process.clock), process.result)

    def started(self) -> Process:
        """Returns the process. Raises `UnavailableError` if it cannot be started."""
        if not self.python:
            raise UnavailableError(
                f"no interpreter with torch was named (--torch-python or {VARIABLE})"
            )
        if self.process is None:
            process = Process(self.python, self.worker)
            try:
                self.version = str(process.ask("version")["version"])
            except UnavailableError:
                process.close()
                raise
            self.process = process
        return self.process

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self.process is not None:
            self.process.close()
            self.process = self.loaded = None


def send(process: Process, problem: Problem) -> None:
    """Writes the problem to a file that the process reads."""
    matrix = problem.bsr if isinstance(problem, BsrSpmm) else problem.csr
    path = Path(process.folder.name, "problem.npz")
    arrays = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
    arrays |= {f"operand{number}": operand for number, operand in enumerate(problem.operands)}
    np.savez(path, allow_pickle=False, **arrays)
    try:
        process.ask("load", op=problem.op, shape=list(matrix.shape), file=str(path))
    finally:
        path.unlink()
