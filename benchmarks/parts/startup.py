"""Start times of import and command line, each measured in a fresh process."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.harness.progress import Bar
from benchmarks.parts.fresh_process import run_fresh
from benchmarks.records import Startup

PROCESSES = 9
SECONDS_PER_PROCESS = 0.3
"""Used only to estimate the duration."""

IMPORT = """
import sys, time
start = time.perf_counter()
{statement}
seconds = time.perf_counter() - start
import json
print(json.dumps([seconds, "llvmlite" in sys.modules]))
"""


@dataclass(frozen=True)
class StartupProbe:
    """Something to start, its limit (None: none), and a function that measures it once and returns
    seconds and whether LLVM was loaded (None: unknown)."""

    what: str
    limit_ms: float | None
    measure: Callable[[], tuple[float, bool | None]]


def estimated_seconds() -> float:
    """Return the estimated duration."""
    return len(STARTS) * (PROCESSES + 1) * SECONDS_PER_PROCESS


def measure_startups(bar: Bar) -> tuple[Startup, ...]:
    """Measure everything in the list."""
    startups = []
    for start in STARTS:
        bar.describe(f"{start.what} in {PROCESSES} fresh processes")
        startups.append(measure_startup(start))
        bar.advance(estimated_seconds() / len(STARTS))
    return tuple(startups)


def measure_startup(start: StartupProbe) -> Startup:
    """Return the median over several processes, after one that fills the caches of the file system."""
    start.measure()
    seconds, loads = zip(*(start.measure() for _ in range(PROCESSES)), strict=True)
    samples = tuple(round(1e3 * second, 1) for second in seconds)
    loads_llvm = None if loads[0] is None else any(loads)
    return Startup(start.what, statistics.median(samples), start.limit_ms, loads_llvm)


def measure_statement(statement: str) -> tuple[float, bool]:
    """Time a statement inside a fresh process."""
    program = IMPORT.format(statement=statement)
    seconds, loads_llvm = json.loads(run_fresh(sys.executable, "-c", program))
    return float(seconds), bool(loads_llvm)


def measure_help() -> tuple[float, None]:
    """Time `gossamer --help` from start to end."""
    command = str(Path(sys.executable).with_name("gossamer"))
    start = time.perf_counter()
    run_fresh(command, "--help")
    return time.perf_counter() - start, None


STARTS = (
    StartupProbe("import gossamer", 200.0, partial(measure_statement, "import gossamer")),
    StartupProbe(
        "from gossamer import spmm", None, partial(measure_statement, "from gossamer import spmm")
    ),
    StartupProbe("gossamer --help", 300.0, measure_help),
)
