"""From script to callable: every measurement in a process of its own, with a cache of its own.

What is timed starts with the script's text and ends with a kernel that can be called. Importing
is measured apart: once as all that building needs, once with nothing but `import gossamer` done.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from rich.console import Console

from benchmarks.meter import wait_for_quiet
from benchmarks.records import CompileTime

PROCESSES = 7
QUIET_SECONDS = 5.0
FEATURES = 64
Times: TypeAlias = Mapping[str, float]

PROBE = """
import importlib, json, pkgutil, sys, time

start = time.perf_counter()
import gossamer

op, features, is_warm = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "warm"
if is_warm:
    import gossamer.build, gossamer.operators.spmm, gossamer.operators.spmv, llvmlite.binding

    for part in ("ir", "formats", "backend", "schedule", "lower", "llvm", "generic_cpu"):
        package = importlib.import_module(f"gossamer_{part}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
imported = time.perf_counter()

from gossamer.build import build
from gossamer.operators import operator_named
from gossamer.operators.operator import Variant, module_of
from gossamer_ir.contracts import Stats

operator = operator_named(op)
variant = Variant(features=features if operator.features else None)
stats = Stats(rows=170_000, columns=170_000, nnz=1_200_000, longest_row=9_000, empty_rows=0)
built = build(module_of(operator, variant), stats=stats)
done = time.perf_counter()

notes = dict(built.kernel.artifact.metadata)
times = {key: float(value) for key, value in notes.items() if key.endswith("_ms")}
llvm = sum(times.get(step, 0.0) for step in ("parse_ms", "optimize_ms", "codegen_ms"))
total, loading = 1e3 * (done - imported), 1e3 * (imported - start)
print(json.dumps({"total": total, "import": loading, "llvm": llvm, "cached": built.cached}))
"""


class ProbeError(Exception):
    """A process that should have built a kernel failed; the text holds what it said."""


def probe(op: str, mode: str, cache: str) -> Times:
    """One fresh process that builds a kernel, with the cache in a folder."""
    environment = {**os.environ, "GOSSAMER_CACHE_DIR": cache}
    command = [sys.executable, "-c", PROBE, op, str(FEATURES), mode]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProbeError(f"building {op} in a fresh process failed:\n{done.stderr}")
    times: Times = json.loads(done.stdout.splitlines()[-1])
    return times


def probe_pair(op: str, mode: str) -> tuple[Times, Times]:
    """Two fresh processes one after the other: nothing cached, then everything."""
    wait_for_quiet(QUIET_SECONDS)
    with tempfile.TemporaryDirectory() as cache:
        return probe(op, mode, cache), probe(op, mode, cache)


def median(times: Iterable[Times], key: str) -> float:
    """The median of one of the figures."""
    return statistics.median(float(found[key]) for found in times)


def measure_compile_time(op: str) -> CompileTime:
    """The medians over some processes."""
    warm = [probe_pair(op, "warm") for _ in range(PROCESSES)]
    cold = [probe_pair(op, "cold") for _ in range(PROCESSES)]
    first, second = zip(*warm, strict=True)
    cold_first, cold_second = zip(*cold, strict=True)
    return CompileTime(
        op=op,
        features=FEATURES if op == "spmm" else 1,
        uncached_ms=median(first, "total"),
        llvm_ms=median(first, "llvm"),
        cached_ms=median(second, "total"),
        import_ms=median(first, "import"),
        uncached_with_imports_ms=median(cold_first, "total"),
        cached_with_imports_ms=median(cold_second, "total"),
    )


def measure_compile_times(ops: Sequence[str], console: Console) -> list[CompileTime]:
    """The compile times of the operators."""
    times = []
    for op in ops:
        with console.status(f"{op}: from script to callable in {4 * PROCESSES} fresh processes"):
            times.append(measure_compile_time(op))
    return times
