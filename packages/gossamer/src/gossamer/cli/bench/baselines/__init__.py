"""The programs that users of NumPy and SciPy write for each operator, and the bounds of their rounding
errors; one file for each operator.

`gossamer run` times them beside gossamer. In float64 they are also the expected results. The oracles of the
tests, which do not use SciPy, are in `gossamer_testkit.matrices.oracles`.
"""

from __future__ import annotations

from importlib import import_module

from gossamer.cli.bench.baselines.baseline import Baseline


def baseline_of(op: str) -> Baseline:
    """Return the baseline of an operator: `BASELINE` of the module with its name."""
    baseline: Baseline = import_module(f"gossamer.cli.bench.baselines.{op}").BASELINE
    return baseline
