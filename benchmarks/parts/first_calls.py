"""First calls of operators with nothing cached, each in a fresh process with an empty cache folder.

A first call in a process also imports what compiles kernels, and LLVM. A second kernel is the first call of
an operator in a process that has called another operator before. NumPy and SciPy are imported before, and the
matrix is so small that its kernel takes no time.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec

from benchmarks.gossamer_operators import (
    another_operator,
    features_of,
    processes_of,
    shared_operators,
)
from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.part import RunPart, Series
from benchmarks.parts.processes.fresh_process import run_fresh
from benchmarks.text_tables import Sheet
from gossamer.cli.comparison.baselines import baseline_of

SECONDS_PER_PROCESS = 1.0
"""Used only to estimate the duration."""
FEATURES = 64
ROWS = 500
"""The rows and columns of the matrix; `PROBE` makes one with as many."""

PROBE = """
import json, sys, time

import numpy as np
import scipy.sparse

import gossamer as gs

rows, calls = int(sys.argv[1]), json.loads(sys.argv[2])
rng = np.random.default_rng(0)
matrix = scipy.sparse.random(rows, rows, 0.01, format="csr", dtype=np.float32, random_state=1)
*before, timed = [(name, [rng.random(shape, dtype=np.float32) for shape in shapes]) for name, shapes in calls]


def call(name, dense):
    getattr(gs, name)(matrix, *dense)


for name, dense in before:
    call(name, dense)
begin, cpu = time.perf_counter(), time.process_time()
call(*timed)
print(json.dumps([time.perf_counter() - begin, time.process_time() - cpu]))
"""


FirstCallState: TypeAlias = Literal["first call", "second kernel"]
"""The call that is measured: the first one of a fresh process, or the first one of an operator after a call
of another."""


class FirstCall(msgspec.Struct, frozen=True):
    """Milliseconds of a call with nothing cached: the median over fresh processes, the least time of the CPU,
    and the limit of the latter (None: none). It includes imports in a first call."""

    op: str
    features: int
    state: FirstCallState
    median_ms: float
    least_cpu_ms: float
    limit_ms: float | None

    @property
    def is_met(self) -> bool:
        return self.limit_ms is None or self.least_cpu_ms <= self.limit_ms


LIMITS_MS: dict[tuple[str, FirstCallState], float] = {
    ("spmm", "first call"): 150.0,
    ("attention", "first call"): 250.0,
    ("spmm", "second kernel"): 20.0,
    ("attention", "second kernel"): 60.0,
}
"""Goals for the milliseconds of CPU of calls with nothing cached, by operator and state."""


class Seconds(NamedTuple):
    """The duration of a call, and the time of the CPU in it."""

    wall: float
    cpu: float


def probe_first_call(op: str, state: FirstCallState) -> Seconds:
    """Measure a call in a fresh process."""
    called = {"first call": (op,), "second kernel": (another_operator(op), op)}[state]
    calls = [(name, baseline_of(name).operand_shapes((ROWS, ROWS), FEATURES)) for name in called]
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-c", PROBE, str(ROWS), json.dumps(calls))
        output = run_fresh(*command, GOSSAMER_CACHE_DIR=folder)
    return Seconds(*json.loads(output.splitlines()[-1]))


def measure_first_call(op: str, state: FirstCallState, processes: int) -> FirstCall:
    """Return the median duration and the least time of the CPU over several processes."""
    samples = [probe_first_call(op, state) for _ in range(processes)]
    return FirstCall(
        op=op,
        features=features_of(op, FEATURES),
        state=state,
        median_ms=round(1e3 * statistics.median(sample.wall for sample in samples), 1),
        least_cpu_ms=round(1e3 * min(sample.cpu for sample in samples), 1),
        limit_ms=LIMITS_MS.get((op, state)),
    )


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    calls = len(shared_operators(job.chosen.op)) * len(get_args(FirstCallState))
    return calls * processes_of(job.chosen) * SECONDS_PER_PROCESS


def measure_first_calls(job: Job, bar: Bar) -> Iterator[FirstCall]:
    """Measure the given operators that gossamer offers, in both states."""
    processes = processes_of(job.chosen)
    for op in shared_operators(job.chosen.op):
        for state in get_args(FirstCallState):
            bar.describe(f"{op}: {state} in {processes} fresh processes")
            yield measure_first_call(op, state, processes)
            bar.advance(processes * SECONDS_PER_PROCESS)


def first_calls_sheet(calls: Iterable[FirstCall]) -> Sheet:
    """Return first calls against their goals."""
    columns = ("op", "call", "K", "median", "least of CPU", "wanted at most", "")
    sheet = Sheet("a call with nothing cached, ms, fresh processes", columns, words=2)
    for call in calls:
        figures = (str(call.features), f"{call.median_ms:.1f}", f"{call.least_cpu_ms:.1f}")
        limit = "-" if call.limit_ms is None else f"{call.limit_ms:.0f}"
        verdict = "" if call.limit_ms is None else "met" if call.is_met else "MISSED"
        sheet.rows.append((call.op, call.state, *figures, limit, verdict))
    return sheet


PART = RunPart(
    "first",
    "first calls with nothing cached, and second kernels",
    (Series("first_calls", FirstCall, summary=first_calls_sheet),),
    estimated_seconds,
    measure_first_calls,
    options=("op",),
)
