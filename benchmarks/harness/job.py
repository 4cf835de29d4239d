"""The measurements of a run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence

import msgspec

from benchmarks.harness.process import Remote
from benchmarks.harness.rounds import SamplingPlan
from benchmarks.harness.tasks import Batch
from benchmarks.records import Results


class Job(msgspec.Struct, frozen=True):
    """Everything that parts need. `results` grows while they run: cells know the share of the rooflines that
    they reach."""

    chosen: argparse.Namespace
    plan: SamplingPlan
    batches: Sequence[Batch]
    missing: Mapping[str, str]
    contenders: Mapping[str, Remote]
    threads: tuple[int, ...]
    results: Results

    def cpu_seconds(self) -> float:
        """Return the CPU time of this process, of those that it has started and of the contenders."""
        return sum(os.times()[:4]) + sum(one.cpu_seconds() for one in self.contenders.values())

    def close(self) -> None:
        """End the processes of contenders."""
        for remote in self.contenders.values():
            remote.close()
