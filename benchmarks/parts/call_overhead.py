"""The cost of a call besides its machine code: kernels of a matrix with one element, on one thread.

The machine code of such a kernel takes some nanoseconds, so nearly all of the time is overhead. Two
lower bounds are measured with it: the same function called by `ctypes` with converted arguments (the
cost of any C call with as many arguments), and an empty C function without arguments (the cost of any
C call).
"""

from __future__ import annotations

import ctypes
import statistics
import timeit
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec
import numpy as np
from scipy import sparse

import gossamer as gs
from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.part import PartError, RunPart, Series
from benchmarks.text_tables import Sheet
from gossamer.cli.comparison.timing import TimedCall
from gossamer.operators import operator_named
from gossamer_backend import NativeCall
from gossamer_backend.call.abi import Workspace
from gossamer_formats import from_scipy
from gossamer_ir.interchange.kernel_abi import NOT_GUARDED

ROUNDS = 21
CALL_COUNT = 20_000
LIMIT_US = 3.0
"""The goal for a bound call."""

OPERATORS = ("spmv", "spmm")
BOUND = "bound()"
SECONDS_PER_OPERATOR = 5.0
"""Used only to estimate the duration."""


class WrongCallError(PartError):
    """A call gave a wrong result."""


class CallCost(msgspec.Struct, frozen=True):
    """Microseconds of a call on one element, and its limit (None: none)."""

    op: str
    what: str
    median_us: float
    limit_us: float | None

    @property
    def is_met(self) -> bool:
        return self.limit_us is None or self.median_us < self.limit_us


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration for all operators."""
    return SECONDS_PER_OPERATOR * len(OPERATORS)


def measure_call_costs(job: Job, bar: Bar) -> Iterator[CallCost]:
    """Measure all ways to call each operator; only the bound call has a limit."""
    for op in OPERATORS:
        bar.describe(f"what a call of {op} costs")
        medians = median_microseconds(calls_of(op))
        for what, time in medians.items():
            yield CallCost(op, what, time, LIMIT_US if what == BOUND else None)
        bar.advance(SECONDS_PER_OPERATOR)


def calls_of(op: str) -> dict[str, TimedCall]:
    """Return equivalent calls by name, the bound one first."""
    gs.set_num_threads(1)
    matrix = sparse.csr_array(np.array([[2.0]], dtype=np.float32))
    tensor = from_scipy(matrix)
    operator = operator_named(op)
    shape = (1,) * operator.program.dense_dimensions
    dense, out = np.full(shape, 3.0, np.float32), np.zeros(shape, np.float32)
    bound = operator.bind(tensor, dense, out=out)
    assert isinstance(bound, NativeCall), "a matrix of one element has one kernel"
    workspace = Workspace(1, None, NOT_GUARDED)
    bare = partial(bound.kernel.function, *bound.prepared_arguments, ctypes.byref(workspace))
    calls: dict[str, TimedCall] = {
        BOUND: bound,
        "the same function by ctypes": bare,
        "a C function that does nothing": ctypes.CDLL(None).getppid,
        f"gossamer.{op}(tensor, ..., out=...)": partial(operator, tensor, dense, out=out),
        f"gossamer.{op}(SciPy matrix, ..., out=...)": partial(operator, matrix, dense, out=out),
    }
    for name, call in calls.items():
        out[...] = 0
        call()
        if "nothing" not in name and out.flat[0] != 6.0:
            raise WrongCallError(f"{name} computed {out.flat[0]}, not 6.")
    return calls


def median_microseconds(calls: dict[str, TimedCall]) -> dict[str, float]:
    """Return medians in microseconds over interleaved rounds."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            count = CALL_COUNT if "SciPy" not in name else CALL_COUNT // 50
            samples[name].append(timeit.timeit(call, number=count) / count * 1e6)
    return {name: float(f"{statistics.median(times):.4g}") for name, times in samples.items()}


def calls_sheet(costs: Iterable[CallCost]) -> Sheet:
    """Return costs of calls on one element against their goals."""
    columns = ("op", "call", "median", "wanted below", "")
    sheet = Sheet("cost of a call, us, one element, one thread", columns, words=2)
    for cost in costs:
        limit = "-" if cost.limit_us is None else f"{cost.limit_us:g}"
        verdict = "" if cost.limit_us is None else "met" if cost.is_met else "MISSED"
        sheet.rows.append((cost.op, cost.what, f"{cost.median_us:.2f}", limit, verdict))
    return sheet


PART = RunPart(
    "calls",
    "the overhead of a call: kernels of a matrix with one element",
    (Series("call_costs", CallCost, summary=calls_sheet),),
    estimated_seconds,
    measure_call_costs,
    is_quick=True,
)
