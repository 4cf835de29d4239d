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
from collections.abc import Sequence
from typing import NamedTuple, get_args

from benchmarks.goals import FIRST_CALLS
from benchmarks.harness.progress import Bar
from benchmarks.parts.fresh_process import run_fresh
from benchmarks.parts.measured_operators import another_operator, features_of, known
from benchmarks.records import FirstCall, FirstCallState
from gossamer.comparison.baselines import baseline_of

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


class Seconds(NamedTuple):
    """The duration of a call, and the time of the CPU in it."""

    wall: float
    cpu: float


def probe(op: str, state: FirstCallState) -> Seconds:
    """Measure a call in a fresh process."""
    called = {"first call": (op,), "second kernel": (another_operator(op), op)}[state]
    calls = [(name, baseline_of(name).operand_shapes((ROWS, ROWS), FEATURES)) for name in called]
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-c", PROBE, str(ROWS), json.dumps(calls))
        output = run_fresh(*command, GOSSAMER_CACHE_DIR=folder)
    return Seconds(*json.loads(output.splitlines()[-1]))


def measure_first_call(op: str, state: FirstCallState, processes: int) -> FirstCall:
    """Return the median duration and the least time of the CPU over several processes."""
    samples = [probe(op, state) for _ in range(processes)]
    return FirstCall(
        op=op,
        features=features_of(op, FEATURES),
        state=state,
        median_ms=round(1e3 * statistics.median(sample.wall for sample in samples), 1),
        least_cpu_ms=round(1e3 * min(sample.cpu for sample in samples), 1),
        limit_ms=FIRST_CALLS.get((op, state)),
    )


def estimated_seconds(ops: Sequence[str], processes: int) -> float:
    """Return the estimated duration."""
    return len(known(ops)) * len(get_args(FirstCallState)) * processes * SECONDS_PER_PROCESS


def measure_first_calls(ops: Sequence[str], bar: Bar, processes: int) -> tuple[FirstCall, ...]:
    """Measure the given operators that gossamer offers, in both states."""
    calls = []
    for op in known(ops):
        for state in get_args(FirstCallState):
            bar.describe(f"{op}: {state} in {processes} fresh processes")
            calls.append(measure_first_call(op, state, processes))
            bar.advance(processes * SECONDS_PER_PROCESS)
    return tuple(calls)
