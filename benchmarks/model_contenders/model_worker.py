"""The process of a contender for models: `python -m benchmarks.model_contenders.model_worker NAME`."""

from __future__ import annotations

import sys

from benchmarks.harness.worker import Worker, answer_requests
from benchmarks.model_contenders import MODEL_CONTENDERS, load_prepare_model
from benchmarks.models.model_case import read_model_case


def main(name: str) -> None:
    """Answer requests for a contender until the input ends."""

    def load() -> Worker:
        return Worker(load_prepare_model(name), MODEL_CONTENDERS[name].packages, read_model_case)

    answer_requests(load)


if __name__ == "__main__":
    main(*sys.argv[1:])
