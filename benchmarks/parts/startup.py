"""Start times of import and command line, each measured in a fresh process."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.part import RunPart, Series
from benchmarks.parts.processes.fresh_process import run_fresh
from benchmarks.text_tables import Sheet

PROCESSES = 9
SECONDS_PER_START = (PROCESSES + 1) * 0.3
"""Used only to estimate the duration."""

IMPORT = """
import sys, time
start = time.perf_counter()
{stmt}
seconds = time.perf_counter() - start
import json
print(json.dumps([seconds, "llvmlite" in sys.modules]))
"""


class StartupProbe(msgspec.Struct, frozen=True):
    """Something to start, its limit (None: none), and a function that measures it once and returns
    seconds and whether LLVM was loaded (None: unknown)."""

    what: str
    limit_ms: float | None
    measure: Callable[[], tuple[float, bool | None]]


class Startup(msgspec.Struct, frozen=True):
    """Median milliseconds of an import or command in fresh processes, its limit (None: none), and
    whether it loaded LLVM (None: unknown)."""

    what: str
    median_ms: float
    limit_ms: float | None
    loads_llvm: bool | None

    @property
    def is_met(self) -> bool:
        is_soon = self.limit_ms is None or self.median_ms < self.limit_ms
        # A command that compiles nothing must not load LLVM, even on a machine where that is quick.
        return is_soon and not self.loads_llvm


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    return len(STARTS) * SECONDS_PER_START


def measure_startups(job: Job, bar: Bar) -> Iterator[Startup]:
    """Measure everything in the list."""
    for start in STARTS:
        bar.describe(f"{start.what} in {PROCESSES} fresh processes")
        yield measure_startup(start)
        bar.advance(SECONDS_PER_START)


def measure_startup(start: StartupProbe) -> Startup:
    """Return the median over several processes, after one that fills the caches of the file system."""
    start.measure()
    seconds, loads = zip(*(start.measure() for _ in range(PROCESSES)), strict=True)
    samples = tuple(round(1e3 * second, 1) for second in seconds)
    loads_llvm = None if loads[0] is None else any(loads)
    return Startup(start.what, statistics.median(samples), start.limit_ms, loads_llvm)


def measure_stmt(stmt: str) -> tuple[float, bool]:
    """Time a statement inside a fresh process."""
    program = IMPORT.format(stmt=stmt)
    seconds, loads_llvm = json.loads(run_fresh(sys.executable, "-c", program))
    return float(seconds), bool(loads_llvm)


def measure_help() -> tuple[float, None]:
    """Time `gossamer --help` from start to end."""
    command = str(Path(sys.executable).with_name("gossamer"))
    start = time.perf_counter()
    run_fresh(command, "--help")
    return time.perf_counter() - start, None


STARTS = (
    StartupProbe("import gossamer", 200.0, partial(measure_stmt, "import gossamer")),
    StartupProbe(
        "from gossamer import spmm", None, partial(measure_stmt, "from gossamer import spmm")
    ),
    StartupProbe("gossamer --help", 300.0, measure_help),
)


def startup_sheet(startups: Iterable[Startup]) -> Sheet:
    """Start times against their goals."""
    sheet = Sheet("start, ms, fresh processes", ("what", "median", "wanted below", "LLVM", ""))
    for one in startups:
        loaded = {None: "-", False: "not loaded", True: "LOADED"}[one.loads_llvm]
        verdict = "met" if one.is_met else "MISSED"
        limit = "-" if one.limit_ms is None else f"{one.limit_ms:.0f}"
        figures = (f"{one.median_ms:.0f}", limit, loaded, verdict)
        sheet.rows.append((one.what, *figures))
    return sheet


PART = RunPart(
    "startup",
    "import and `--help` in fresh processes",
    (Series("startups", Startup, summary=startup_sheet),),
    estimated_seconds,
    measure_startups,
    is_quick=True,
)
