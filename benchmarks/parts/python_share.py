"""Compile time of Python, compared with that of LLVM for the same kernel.

Each measurement uses a fresh process that has compiled another kernel before: everything is imported and
LLVM is initialized, but nothing about the measured program is memoized.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator

import msgspec

from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.part import RunPart, Series
from benchmarks.parts.processes.fresh_process import run_fresh
from benchmarks.text_tables import Sheet

PROCESSES = 5
SECONDS_PER_PROCESS = 1.5
"""Used only to estimate the duration."""

LIMITS = {
    "spmm, all but LLVM": 1.0,
    "spmv, all but LLVM": 1.0,
    "sddmm, all but LLVM": 1.0,
    "200 nodes, lowering": 1.0,
    "spmm, replaying 30 steps": 2.0,
}
"""Goals for the time of Python divided by that of LLVM for the same kernel, by subject of
`processes/python_share.py`."""


class PythonShare(msgspec.Struct, frozen=True):
    """Median milliseconds of Python and of LLVM for a kernel in fresh processes, and the limit of their
    ratio."""

    what: str
    python_ms: float
    llvm_ms: float
    limit: float

    @property
    def ratio(self) -> float:
        return self.python_ms / self.llvm_ms

    @property
    def is_met(self) -> bool:
        return self.ratio <= self.limit


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    return len(LIMITS) * PROCESSES * SECONDS_PER_PROCESS


def measure_python_shares(job: Job, bar: Bar) -> Iterator[PythonShare]:
    """Measure all subjects."""
    for what in LIMITS:
        bar.describe(f"{what}: Python's time in {PROCESSES} fresh processes")
        yield measure_python_share(what)
        bar.advance(PROCESSES * SECONDS_PER_PROCESS)


def measure_python_share(what: str) -> PythonShare:
    """Return medians over several processes."""
    python, llvm = zip(*(probe_shares(what) for _ in range(PROCESSES)), strict=True)
    return PythonShare(what, statistics.median(python), statistics.median(llvm), LIMITS[what])


def probe_shares(what: str) -> tuple[float, float]:
    """Return the milliseconds of Python and of LLVM in one fresh process."""
    python, llvm = json.loads(
        run_fresh(sys.executable, "-m", "benchmarks.parts.processes.python_share", what)
    )
    return float(python), float(llvm)


def python_sheet(shares: Iterable[PythonShare]) -> Sheet:
    """Return Python's time against its goal."""
    columns = ("what", "Python", "LLVM", "ratio", "wanted at most", "")
    sheet = Sheet("what Python takes to compile, ms, fresh processes", columns)
    for share in shares:
        figures = (f"{share.python_ms:.1f}", f"{share.llvm_ms:.1f}", f"{share.ratio:.2f}")
        verdict = "met" if share.is_met else "MISSED"
        sheet.rows.append((share.what, *figures, f"{share.limit:.1f}", verdict))
    return sheet


PART = RunPart(
    "python",
    "the share of Python in compile times, compared with LLVM",
    (Series("python_shares", PythonShare, summary=python_sheet),),
    estimated_seconds,
    measure_python_shares,
)
