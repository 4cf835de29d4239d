"""Conversions between formats, compared with those of SciPy, and the building of formats of a large matrix.

Each pair of formats is converted by gossamer and by SciPy in turns on one thread, after a tenth of a second
of conversions by gossamer: it compiles programs for small matrices when there were many. Both results are
the same matrix. Both do the same: SciPy keeps the zeros that fill blocks, and it sorts neither the blocks of
a row, nor the rows of CSR that it makes of them, nor the elements of COO, so these targets of gossamer are
not sorted either. DIA is measured for matrices whose diagonals are not mostly empty.

Conversions of the large matrices are measured on one thread and on two in turns, too, by gossamer only: SciPy
has one thread.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from benchmarks.goals import geometric_mean
from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.matrices import IN_CSR, available
from benchmarks.part import RunPart, Series
from benchmarks.parts.processes.fresh_process import run_fresh
from benchmarks.text_tables import Sheet

MIN_MEAN_RATIO, MIN_RATIO = 1.5, 1.0
"""Goals for the time of SciPy divided by that of gossamer over all conversions: geometric mean, and least."""

USUAL = (
    "cora",
    "pubmed",
    "ppi_graphsaint",
    "ogbn_arxiv",
    "luxembourg_osm",
    "bcsstk16",
    "cavity14",
    "lp_maros_r7",
    "dlmc_tr_mag80_dec3_ffn1",
    "web_cnr2000",
)
"""The matrices that are measured unless others are chosen."""

SECONDS_PER_PAIR = 0.3
"""The time for the samples of a pair; those of slow pairs take longer."""

BUILD_ROWS = 500_000
"""The rows of the large matrix whose formats are built."""

LARGE = ("ogbn_arxiv", "web_cnr2000")
"""The matrices, of more than a million nonzeros, that are converted on two threads."""

ESTIMATED_SECONDS_PER_MATRIX, ESTIMATED_SECONDS_OF_BUILDS = 20.0, 40.0


class ConversionTime(msgspec.Struct, frozen=True):
    """Median milliseconds of a conversion by gossamer and by SciPy, on one thread in turns."""

    matrix: str
    nnz: int
    source: str
    target: str
    gossamer_ms: float
    scipy_ms: float

    @property
    def ratio(self) -> float:
        """The time of SciPy over that of gossamer."""
        return self.scipy_ms / self.gossamer_ms


class ThreadedConversion(msgspec.Struct, frozen=True):
    """Median milliseconds of a conversion by gossamer on one thread and on two, in turns."""

    matrix: str
    nnz: int
    source: str
    target: str
    one_thread_ms: float
    two_threads_ms: float

    @property
    def speedup(self) -> float:
        """The time on one thread over that on two."""
        return self.one_thread_ms / self.two_threads_ms


class FormatBuild(msgspec.Struct, frozen=True):
    """Seconds to store a matrix in CSR in another format on two threads: the median, and those of the first
    call, which may compile."""

    format: str
    nnz: int
    seconds: float
    first_seconds: float

    @property
    def is_met(self) -> bool:
        return self.seconds <= 0.3


def matrices_to_convert(matrices: Sequence[str] | None) -> tuple[str, ...]:
    """Return the matrices to convert.

    >>> matrices_to_convert(["cora", "blocks_4096"])
    ('cora',)
    """
    return USUAL if matrices is None else tuple(name for name in matrices if name in IN_CSR)


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    matrices = matrices_to_convert(job.chosen.matrix)
    count = len(matrices) + len(set(LARGE).intersection(matrices))
    return ESTIMATED_SECONDS_PER_MATRIX * count + ESTIMATED_SECONDS_OF_BUILDS


def measure_conversions_and_builds(
    job: Job, bar: Bar
) -> Iterator[ConversionTime | ThreadedConversion | FormatBuild]:
    """Measure conversions of formats, compared with SciPy, those on two threads, and the building of
    formats."""
    matrices = matrices_to_convert(job.chosen.matrix)
    yield from measure_conversions(matrices, bar)
    yield from measure_threads([name for name in LARGE if name in matrices], bar)
    yield from measure_builds(bar)


def measure_conversions(matrices: Sequence[str], bar: Bar) -> Iterator[ConversionTime]:
    """Measure all pairs of formats for those matrices that are available."""
    for name in available(matrices):
        bar.describe(f"conversions of {name}")
        yield from measure_matrix(name)
        bar.advance(ESTIMATED_SECONDS_PER_MATRIX)


def measure_matrix(name: str) -> list[ConversionTime]:
    """Measure all pairs of formats for one matrix in a fresh process."""
    times = _measure("pairs", name, str(SECONDS_PER_PAIR))
    return [ConversionTime(**time) for time in times]


def measure_threads(matrices: Sequence[str], bar: Bar) -> Iterator[ThreadedConversion]:
    """Measure conversions on one thread and on two for those matrices that are available."""
    for name in available(matrices):
        bar.describe(f"conversions of {name} on two threads")
        for time in _measure("threads", name, str(SECONDS_PER_PAIR)):
            yield ThreadedConversion(**time)
        bar.advance(ESTIMATED_SECONDS_PER_MATRIX)


def _measure(*arguments: str) -> list[dict[str, Any]]:
    """Return what a fresh process measures for a command and its arguments."""
    module = "benchmarks.parts.processes.conversions"
    times: list[dict[str, Any]] = json.loads(run_fresh(sys.executable, "-m", module, *arguments))
    return times


def measure_builds(bar: Bar, *, rows: int = BUILD_ROWS) -> Iterator[FormatBuild]:
    """Measure the building of formats of a large matrix on two threads in a fresh process."""
    bar.describe("formats of a large matrix")
    for build in _measure("builds", str(rows)):
        yield FormatBuild(**build)
    bar.advance(ESTIMATED_SECONDS_OF_BUILDS)


def conversions_sheet(times: Sequence[ConversionTime]) -> Sheet:
    """Return the time of SciPy over ours for all pairs of formats: geometric mean over matrices (least)."""
    formats = list(dict.fromkeys(one.source for one in times))
    ratios = [one.ratio for one in times]
    mean, least = geometric_mean(ratios), min(ratios)
    verdict = "met" if mean >= MIN_MEAN_RATIO and least >= MIN_RATIO else "MISSED"
    below = sum(ratio < MIN_RATIO for ratio in ratios)
    sheet = Sheet(
        "conversions, one thread: time of SciPy / time of gossamer, geometric mean (least)",
        ("from", *(f"to {name}" for name in formats)),
        note=f"mean {mean:.2f} (wanted {MIN_MEAN_RATIO:.2f}), least {least:.2f} (wanted "
        f"{MIN_RATIO:.2f}), {below} of {len(ratios)} below: {verdict}",
    )
    for source in formats:
        texts = []
        for target in formats:
            here = [one.ratio for one in times if (one.source, one.target) == (source, target)]
            texts.append(f"{geometric_mean(here):.2f} ({min(here):.2f})" if here else "-")
        sheet.rows.append((source, *texts))
    return sheet


def conversion_times_sheet(times: Sequence[ConversionTime]) -> Sheet:
    """Return the milliseconds of gossamer and of SciPy for each matrix and pair of formats."""
    columns = ("matrix", "nonzeros", "from", "to", "gossamer ms", "SciPy ms", "ratio")
    sheet = Sheet("conversions, one thread: median ms", columns, words=4)
    for one in times:
        figures = (f"{one.gossamer_ms:.3g}", f"{one.scipy_ms:.3g}", f"{one.ratio:.2f}")
        sheet.rows.append((one.matrix, f"{one.nnz:,}", one.source, one.target, *figures))
    return sheet


def threads_sheet(times: Sequence[ThreadedConversion]) -> Sheet:
    """Return the milliseconds on one thread and on two for each matrix and pair of formats."""
    columns = ("matrix", "nonzeros", "from", "to", "one thread", "two threads", "speed-up")
    sheet = Sheet("conversions by gossamer on one thread and on two: median ms", columns, words=4)
    for one in times:
        figures = (f"{one.one_thread_ms:.3g}", f"{one.two_threads_ms:.3g}", f"{one.speedup:.2f}")
        sheet.rows.append((one.matrix, f"{one.nnz:,}", one.source, one.target, *figures))
    return sheet


def builds_sheet(builds: Sequence[FormatBuild]) -> Sheet:
    """Return the seconds to build formats of a large matrix."""
    columns = ("format", "nonzeros", "seconds", "first call", "")
    sheet = Sheet("building a format of CSR on two threads; wanted: 0.3 s", columns)
    for one in builds:
        figures = (f"{one.nnz:,}", f"{one.seconds:.3f}", f"{one.first_seconds:.3f}")
        sheet.rows.append((one.format, *figures, "met" if one.is_met else "MISSED"))
    return sheet


PART = RunPart(
    "conversions",
    "all pairs of CSR, CSC, BSR, DIA and COO compared with SciPy on one thread; conversions of large "
    "matrices on one thread and on two; the building of formats of 10 million nonzeros on two",
    (
        Series("conversion_times", ConversionTime, conversions_sheet, conversion_times_sheet),
        Series("threaded_conversions", ThreadedConversion, details=threads_sheet),
        Series("format_builds", FormatBuild, summary=builds_sheet),
    ),
    estimated_seconds,
    measure_conversions_and_builds,
    options=("matrix",),
)
