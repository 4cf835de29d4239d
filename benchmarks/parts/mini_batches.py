"""Many different matrices in one process, as in training on neighborhoods of a graph.

A fresh process with an empty kernel cache multiplies the rows of randomly chosen nodes by a dense matrix,
each time as a new SciPy matrix. Measured are the growth of its resident memory, the files that it writes
after the first batches, and the duration of a call besides that of its kernel.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.matrices import available
from benchmarks.part import RunPart, Series
from benchmarks.parts.processes.fresh_process import run_fresh
from benchmarks.text_tables import Sheet

GRAPHS = ("cora", "pubmed", "ogbn_arxiv", "power_law_170k")
USUAL = ("pubmed",)
"""Measured unless matrices are chosen."""
BATCHES, ROWS = 100_000, 1000
SECONDS_PER_GRAPH = 120.0
"""Used only to estimate the duration."""


class MiniBatches(msgspec.Struct, frozen=True):
    """Calls on many different matrices of `rows` rows of a graph in one process: the growth of its resident
    memory, the files written after the first hundred, the microseconds of a call besides its kernel, and
    those of SciPy's whole product."""

    graph: str
    batches: int
    rows: int
    grown_mb: float
    late_files: int
    overhead_us: float
    scipy_us: float

    @property
    def is_met(self) -> bool:
        return self.grown_mb < 5 and self.late_files == 0 and self.overhead_us <= 25


def chosen_graphs(matrices: Sequence[str] | None) -> tuple[str, ...]:
    """Return the graphs among the chosen matrices."""
    return USUAL if matrices is None else tuple(name for name in GRAPHS if name in matrices)


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    return SECONDS_PER_GRAPH * len(chosen_graphs(job.chosen.matrix))


def measure_mini_batches(job: Job, bar: Bar) -> Iterator[MiniBatches]:
    """Measure those graphs that are available."""
    for graph in available(chosen_graphs(job.chosen.matrix)):
        bar.describe(f"{BATCHES:,} mini-batches of {graph}")
        yield measure_graph(graph, BATCHES)
        bar.advance(SECONDS_PER_GRAPH)


def measure_graph(graph: str, batches: int) -> MiniBatches:
    """Measure one graph in a fresh process."""
    with tempfile.TemporaryDirectory() as cache:
        output = run_fresh(
            sys.executable,
            "-m",
            "benchmarks.parts.processes.mini_batches",
            graph,
            str(batches),
            str(ROWS),
            GOSSAMER_CACHE_DIR=cache,
        )
    return MiniBatches(graph, batches, ROWS, **json.loads(output))


def batches_sheet(runs: Iterable[MiniBatches]) -> Sheet:
    """Return memory, files and overhead of many different matrices in one process."""
    columns = (
        "graph",
        "batches",
        "memory, MB",
        "late files",
        "besides the kernel, us",
        "SciPy, us",
        "",
    )
    title = "different matrices in one process; wanted: below 5 MB, no files, 25 us"
    sheet = Sheet(title, columns)
    for one in runs:
        figures = (f"{one.batches:,}", f"{one.grown_mb:.1f}", str(one.late_files))
        times = (f"{one.overhead_us:.1f}", f"{one.scipy_us:.1f}")
        sheet.rows.append((one.graph, *figures, *times, "met" if one.is_met else "MISSED"))
    return sheet


PART = RunPart(
    "batches",
    "100,000 different matrices in one process: memory, files and overhead",
    (Series("mini_batches", MiniBatches, summary=batches_sheet),),
    estimated_seconds,
    measure_mini_batches,
    options=("matrix",),
)
