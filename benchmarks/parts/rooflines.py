"""The bounds of the machine: bandwidths of memory and caches, and the peak of multiply-adds in registers."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.machine.roofline import Roofline, measure_roofline
from benchmarks.part import RunPart, Series

SECONDS_PER_ROOFLINE = 3.0
"""Used only to estimate the duration."""


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    return SECONDS_PER_ROOFLINE * len(job.threads)


def measure_rooflines(job: Job, bar: Bar) -> Iterator[Roofline]:
    """Measure the machine with each number of threads of the operators."""
    for threads in job.threads:
        bar.describe(f"what the machine can do with {threads} thread(s)")
        yield measure_roofline(threads)
        bar.advance(SECONDS_PER_ROOFLINE)


PART = RunPart(
    "roofline",
    "bounds of the machine: bandwidths by working set, the peak of multiply-adds in registers",
    # The head of the report and its picture show them instead of a table.
    (Series("rooflines", Roofline),),
    estimated_seconds,
    measure_rooflines,
    options=("op", "threads"),
    is_quick=True,
)
