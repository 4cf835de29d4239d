"""The process of a contender on a GPU, which answers the requests of `benchmarks.harness.worker`.

It is started as `python -m benchmarks.gpu.gpu_worker NAME TARGET`.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

import numpy as np

from benchmarks.gpu.gpu_contenders import GPU_CONTENDERS
from benchmarks.harness.worker import Answer, Request, Worker, answer_requests


class GpuWorker(Worker):
    """Times calls one at a time by the clock of the contender."""

    def result(self, request: Request) -> Answer:
        """Make one call of `key`, and write its result to `file`."""
        prepared: Any = self.prepared[request["key"], request["threads"]]
        np.save(request["file"], prepared.result())
        return {"digest": prepared.digest}

    def sample(self, key: str, threads: int, untimed: int, timed: int) -> float:
        """Return the median seconds of the timed calls."""
        prepared: Any = self.prepared[key, threads]
        for _ in range(untimed):
            prepared.clock(prepared.call)
        seconds = [float(prepared.clock(prepared.call)) for _ in range(max(timed, 1))]
        return statistics.median(seconds)


def main(name: str, target: str) -> None:
    """Answer requests until the input ends."""
    prepare: Any = GPU_CONTENDERS[name]

    def load() -> Worker:
        return GpuWorker(lambda case, _threads: prepare(case, target))

    answer_requests(load)


if __name__ == "__main__":
    main(*sys.argv[1:])
