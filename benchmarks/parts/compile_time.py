"""Time from script to callable, each measured in a fresh process with a fresh cache.

The time from the script's text to a callable kernel is measured in three states of the process, to
separate the work that a process does only once: after `import gossamer`, with everything imported, and
after another operator's kernel has been built (so the backend and LLVM are initialized).
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, get_args

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

SECONDS_PER_PROCESS = 0.5
"""Used only to estimate the duration."""
FEATURES = 64
Times: TypeAlias = Mapping[str, float]

PROBE = """
import importlib, json, pkgutil, sys, time

start = time.perf_counter()
import gossamer

op, another, features, done_before = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
if done_before != "import gossamer":
    import llvmlite.binding

    parts = ("ir", "formats", "backend", "schedule", "lower", "llvm", "generic_cpu")
    for name in ("gossamer.operator_calls", "gossamer.operators", *(f"gossamer_{part}" for part in parts)):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
from gossamer.operator_calls.operator_kernels import KernelSpec, kernel_for
from gossamer.operators import operator_named
from gossamer.operator_calls.operator_program import Variant
from gossamer_ir.interchange.records import Stats

stats = Stats(rows=170_000, columns=170_000, nnz=1_200_000, longest_row=9_000, empty_rows=0)


def script_to_callable(name):
    program = operator_named(name).program
    variant = Variant(features=features if program.features else None)
    return kernel_for(KernelSpec(program, variant, stats))


if done_before == "another kernel":
    script_to_callable(another)
begin = time.perf_counter()
built = script_to_callable(op)
done = time.perf_counter()

notes = dict(built.kernel.artifact.metadata)
times = {key: float(value) for key, value in notes.items() if key.endswith("_ms")}
llvm = sum(times.get(step, 0.0) for step in ("parse_ms", "optimize_ms", "codegen_ms"))
total, before = 1e3 * (done - begin), 1e3 * (begin - start)
print(json.dumps({"total": total, "before": before, "llvm": llvm, "cached": built.is_cached}))
"""


DoneBefore: TypeAlias = Literal["another kernel", "imports", "import gossamer"]
"""The state of a fresh process before the measurement."""


class CompileTime(msgspec.Struct, frozen=True):
    """Median milliseconds from script to callable in fresh processes: with an empty cache, the part of
    LLVM (parsing, passes, code generation), and from the request cache. `before_ms` is the time that the
    process took before."""

    op: str
    features: int
    done_before: DoneBefore
    before_ms: float
    uncached_ms: float
    llvm_ms: float
    cached_ms: float


def probe_build(op: str, done_before: DoneBefore, cache: str) -> Times:
    """Build a kernel in a fresh process, with its cache in a folder."""
    another = another_operator(op)
    command = (sys.executable, "-c", PROBE, op, another, str(FEATURES), done_before)
    times: Times = json.loads(run_fresh(*command, GOSSAMER_CACHE_DIR=cache).splitlines()[-1])
    return times


def probe_pair(op: str, done_before: DoneBefore) -> tuple[Times, Times]:
    """Build a kernel in two fresh processes: with an empty cache, then from the cache."""
    with tempfile.TemporaryDirectory() as cache:
        return probe_build(op, done_before, cache), probe_build(op, done_before, cache)


def median(times: Iterable[Times], key: str) -> float:
    """Return the median of one figure."""
    return statistics.median(float(record[key]) for record in times)


def measure_compile_time(op: str, done_before: DoneBefore, processes: int) -> CompileTime:
    """Return medians over several processes."""
    first, second = zip(*(probe_pair(op, done_before) for _ in range(processes)), strict=True)
    return CompileTime(
        op=op,
        features=features_of(op, FEATURES),
        done_before=done_before,
        before_ms=median(first, "before"),
        uncached_ms=median(first, "total"),
        llvm_ms=median(first, "llvm"),
        cached_ms=median(second, "total"),
    )


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    pairs = (
        len(shared_operators(job.chosen.op)) * len(get_args(DoneBefore)) * processes_of(job.chosen)
    )
    return 2 * pairs * SECONDS_PER_PROCESS


def measure_compile_times(job: Job, bar: Bar) -> Iterator[CompileTime]:
    """Measure compile times of the given operators that gossamer offers."""
    processes = processes_of(job.chosen)
    for op in shared_operators(job.chosen.op):
        for done_before in get_args(DoneBefore):
            bar.describe(f"{op}: from script to callable in {2 * processes} fresh processes")
            yield measure_compile_time(op, done_before, processes)
            bar.advance(2 * processes * SECONDS_PER_PROCESS)


def compile_sheet(times: Iterable[CompileTime]) -> Sheet:
    """Return the times from script to callable in a fresh process; at most 3 times LLVM, a tenth when
    cached."""
    columns = ("op", "done before", "K", "taking", "nothing cached", "LLVM", "ratio")
    sheet = Sheet(
        "script to callable, ms, fresh processes", (*columns, "request cache", "ratio"), words=2
    )
    for time in times:
        texts = (
            f"{time.before_ms:.0f}",
            f"{time.uncached_ms:.1f}",
            f"{time.llvm_ms:.1f}",
            f"{time.uncached_ms / time.llvm_ms:.2f}",
            f"{time.cached_ms:.2f}",
            f"{time.cached_ms / time.uncached_ms:.3f}",
        )
        sheet.rows.append((time.op, time.done_before, str(time.features), *texts))
    return sheet


PART = RunPart(
    "compile",
    "script to callable in fresh processes",
    (Series("compile_times", CompileTime, summary=compile_sheet),),
    estimated_seconds,
    measure_compile_times,
    options=("op",),
)
