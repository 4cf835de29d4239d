"""Milliseconds of each step of the backend generic-cpu, from a flat module to a loaded kernel: medians of
several runs in one process. `parts/compile_time.py` measures the whole way from a script, in fresh processes.

    python -m benchmarks.codegen_time [FEATURES]
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time

from benchmarks.harness.process import REPOSITORY
from gossamer_generic_cpu.backend import GenericCpu
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module

ROUNDS = 21
STEPS = ("emit", "parse", "optimize", "codegen", "load")


def hand_built() -> dict[str, Module]:
    """Return the modules of the backend's tests: SpMM for the given features, and SpMV."""
    path = REPOSITORY / "plugins" / "generic-cpu" / "tests" / "conftest.py"
    spec = importlib.util.spec_from_file_location("hand_built", path)
    assert spec is not None
    assert spec.loader is not None
    tests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tests)
    features = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    return {f"spmm K={features}": tests.spmm(features), "spmv": tests.spmv()}


def median_times(module: Module) -> dict[str, float]:
    """Return the median of each step."""
    backend = GenericCpu()
    times: dict[str, list[float]] = {step: [] for step in STEPS}
    for _ in range(ROUNDS):
        artifact = backend.compile(module, Target.parse("generic-cpu"))
        start = time.perf_counter()
        backend.load(artifact)
        times["load"].append(1000 * (time.perf_counter() - start))
        for step in STEPS[:-1]:
            times[step].append(float(artifact.metadatum(f"{step}_ms")))
    return {step: statistics.median(values) for step, values in times.items()}


def main() -> None:
    """Print one line for each kernel."""
    print(f"{'kernel':12}", *(f"{step:>9}" for step in (*STEPS, "total")))
    for name, module in hand_built().items():
        times_of_steps = median_times(module)
        values = [*times_of_steps.values(), sum(times_of_steps.values())]
        print(f"{name:12}", *(f"{value:9.2f}" for value in values))


if __name__ == "__main__":
    main()
