"""The operators, compared with all contenders."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.contenders import OURS
from benchmarks.goals import goals_for, misses_goal
from benchmarks.harness.cells import measure_batch
from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.machine.machine_description import vendor_name
from benchmarks.machine.roofline import Roofline
from benchmarks.part import RunPart, Series
from benchmarks.records import Cell, results_of_type


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    return sum(batch.estimated_seconds(job.plan) for batch in job.batches)


def measure_cells(job: Job, bar: Bar) -> Iterator[Cell]:
    """Measure all batches, unless gossamer itself does not start."""
    # Another contender that does not start is left out; without gossamer there is nothing to compare.
    if OURS in job.contenders:
        job.contenders[OURS].ensure_started()
    rooflines = {one.threads: one for one in results_of_type(job.results, Roofline)}
    goals = goals_for(vendor_name())

    def is_missed(cell: Cell) -> bool:
        return misses_goal(cell, goals)

    for batch in job.batches:
        bar.describe(batch.describe())
        yield from measure_batch(batch, job.contenders, rooflines, job.plan, bar, is_missed)
        bar.advance(batch.estimated_seconds(job.plan))


PART = RunPart(
    "kernels",
    "the operators, compared with all contenders",
    # Their tables are about several contenders, goals of a vendor and the bounds: `report` makes them.
    (Series("cells", Cell),),
    estimated_seconds,
    measure_cells,
    options=("op", "matrix", "features", "threads", "dtype", "contenders"),
    is_quick=True,
    runs_contenders=True,
)
