"""The baselines by the names of operators."""

from __future__ import annotations

from importlib import import_module

from gossamer.cli.comparison.baselines.baseline import Baseline


def baseline_of(op: str) -> Baseline:
    """Return the baseline of an operator: `BASELINE` of the module with its name."""
    baseline: Baseline = import_module(f"gossamer.cli.comparison.baselines.{op}").BASELINE
    return baseline
