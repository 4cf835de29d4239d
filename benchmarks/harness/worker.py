"""The process of a contender: reads one request per line and answers each.

Requests and answers are JSON objects; `do` names the request. Arrays travel as files. It is started as
`python -m benchmarks.harness.worker NAME`, or with `--variants FILE` for a contender of that file.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks.contenders import CONTENDERS, load_prepare
from benchmarks.contenders.contender import ContenderCall, Prepare, Prepared, UnavailableError
from benchmarks.operator_case import OperatorCase, read_case

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

Request: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]


class Worker:
    """The prepared cases of a contender, by key and number of threads."""

    def __init__(
        self,
        prepare: Callable[[Any, int], Prepared],
        packages: tuple[str, ...] = (),
        read: Callable[[Path, dict[str, Any]], Any] = read_case,
    ) -> None:
        self.prepare_case = prepare
        self.packages = packages
        self.read_case = read
        self.cases: dict[str, Any] = {}
        self.prepared: dict[tuple[str, int], Prepared] = {}

    def versions(self, _request: Request) -> Answer:
        """Return the versions of the contender's packages."""
        return {"versions": {name: importlib.metadata.version(name) for name in self.packages}}

    def prepare(self, request: Request) -> Answer:
        """Read the case in `folder` and prepare it for each number of `threads`, under the name `key`.
        Returns the reason for each number for which this is impossible."""
        key, skipped = request["key"], {}
        folder = Path(request["folder"])
        case = self.cases[key] = self.read_case(folder, request["description"])
        for threads in request["threads"]:
            try:
                self.prepared[key, threads] = self.prepare_case(case, threads)
            except (UnavailableError, ImportError) as error:
                skipped[threads] = str(error)
        return {"skipped": skipped}

    def result(self, request: Request) -> Answer:
        """Make one call of `key` with `threads` and write its result to `file`."""
        key, threads = request["key"], request["threads"]
        prepared, case = self.prepared[key, threads], self.cases[key]
        prepared.activate()
        np.save(request["file"], result_of(prepared, case))
        return {}

    def conversion(self, request: Request) -> Answer:
        """Return the seconds in which the matrix of `key` was converted for `threads`."""
        return {"seconds": self.prepared[request["key"], request["threads"]].conversion}

    def time(self, request: Request) -> Answer:
        """Take samples, each a key, a number of threads, untimed and timed calls in a row. Returns the
        seconds per timed call of each."""
        return {"seconds": [self.sample(*sample) for sample in request["samples"]]}

    def sample(self, key: str, threads: int, untimed: int, timed: int) -> float:
        """Take one sample."""
        prepared = self.prepared[key, threads]
        # Before the untimed calls: a change of settings, as of the number of threads, is not timed.
        prepared.activate()
        seconds_per_call(prepared.call, untimed)
        return seconds_per_call(prepared.call, timed)

    def forget(self, _request: Request) -> Answer:
        """Free all cases."""
        self.prepared.clear()
        self.cases.clear()
        return {}


REQUESTS = ("versions", "prepare", "result", "conversion", "time", "forget")


def result_of(prepared: Prepared, case: OperatorCase) -> Array:
    """Make a call and return its result. The output is filled with NaN before, so that elements that are
    not written are detected."""
    if prepared.result is not None:
        return prepared.result()
    case.out.fill(np.nan)
    prepared.call()
    return case.out


def seconds_per_call(call: ContenderCall, calls: int) -> float:
    """Return seconds per call over `calls` calls in a row; 0 for none."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / max(calls, 1)


def load_contender(name: str, variants: str | None) -> Prepare:
    """Return the function of a contender."""
    if variants is None:
        return load_prepare(name)
    # Variants need gossamer, which the interpreters of other contenders may lack.
    from benchmarks.schedule_variants import load_variants

    return load_variants(Path(variants))[name]


def main(name: str, variants: str | None = None) -> None:
    """Answer requests for a contender until the input ends."""

    def load() -> Worker:
        packages = CONTENDERS[name].packages if variants is None else ()
        return Worker(load_contender(name, variants), packages)

    answer_requests(load)


def answer_requests(load: Callable[[], Worker]) -> None:
    """Answer requests until the input ends; the first answer says whether the contender can be loaded."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    # output of libraries must not mix with the answers
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.filterwarnings("ignore")
    try:
        worker = load()
    except ImportError as error:
        answers.write(json.dumps({"error": str(error)}) + "\n")
        return
    # An answer without an error: the contender can be loaded.
    answers.write("{}\n")
    for line in sys.stdin:
        request: Request = json.loads(line)
        assert request["do"] in REQUESTS, request["do"]
        answers.write(json.dumps(getattr(worker, request["do"])(request)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
