"""Programs before and after one step of a schedule."""

from __future__ import annotations

import numpy as np

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Module
from gossamer_ir.verify import verify
from gossamer_schedule import apply
from gossamer_testkit.show import body_text


def require_change(module: Module, step: Step, *, names: tuple[str, ...], after: str) -> None:
    """Asserts that a step makes these names and this program, which computes the same."""
    result = apply(verify(module), step)
    assert body_text(result.module) == after.strip("\n")
    assert result.names == names
    assert result.step.op == step.op
    expected, actual = results_of(module), results_of(verify(result.module))
    for array in expected:
        np.testing.assert_array_equal(actual[array], expected[array])


def results_of(module: Module) -> dict[str, np.ndarray]:
    """All arrays of a `program` after a run on small integers."""
    random = np.random.default_rng(3)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    offsets = {"p": np.array([0, 0, 5, 6, 30, 30, 41, 64, 64], np.int32)}
    run(module, arrays | offsets | {"n": 8})
    return arrays
