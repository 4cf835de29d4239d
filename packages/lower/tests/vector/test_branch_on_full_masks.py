"""`branch_on_full_masks`: vectors whose lanes are all enabled run without a mask."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_lower import branch_on_full_masks
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text

GATHER = """
found: T.boolx4 = P[T.ramp(0, 1, 4)] < T.broadcast(n, 4)
Y[T.ramp(0, 1, 4)] = T.load(X, P[T.ramp(0, 1, 4)], predicate=found, passthrough=T.broadcast(0.0, 4))
"""
TWICE = GATHER + GATHER.replace("found", "again").replace("0, 1, 4", "4, 1, 4")
UNCHANGED = {
    "a mask of positions": GATHER.replace("P[T.ramp(0, 1, 4)] < ", "T.ramp(0, 1, 4) < "),
    "consecutive elements": GATHER.replace("X, P[T.ramp(0, 1, 4)]", "X, T.ramp(0, 1, 4)"),
    "a mask of other indices": GATHER.replace(
        "P[T.ramp(0, 1, 4)] <", "P[T.ramp(4, 1, 4)] * 0 <"
    ).replace("X, P[T.ramp(0, 1, 4)]", "X, T.ramp(0, 2, 4)"),
    "an access without the mask": GATHER.splitlines()[1] + "\nY[0] = X[P[0]]",
}


def test_each_mask_has_a_branch_of_its_own():
    text = body_text(branch_on_full_masks(program(TWICE)))
    assert text.count('T.lane_reduce("and"') == 2
    assert text.count("T.load(X") == 2
    assert text.count("if ") == text.count("else:") == 2


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_other_masks_stay(text):
    before = program(text)
    assert branch_on_full_masks(before) == before


def test_what_depends_on_the_mask_stays_after_it():
    before = program(
        GATHER.replace("Y[T.ramp(0, 1, 4)] =", "value: T.float32x4 =")
        + "Y[T.ramp(4, 1, 4)] = value\nY[T.ramp(0, 1, 4)] = value * value\nY[0] = 1.0"
    )
    after = body_text(branch_on_full_masks(before)).splitlines()
    assert after[-1] == "Y[0] = 1.0"
    assert sum("value * value" in line for line in after) == 1
    assert sum("value_1 * value_1" in line for line in after) == 1


@pytest.mark.parametrize("positions", [[0, 1, 2, 3, 4, 5, 6, 7], [8, 1, 2, 3, 0, 0, 9, 8]])
def test_the_result_is_that_of_the_masks(positions):
    before = program(TWICE)
    results = []
    for module in (before, branch_on_full_masks(before)):
        y = np.full(8, np.nan, np.float32)
        arguments = {"p": np.array(positions), "x": np.arange(8, dtype=np.float32), "y": y, "n": 8}
        names = {param.name for param in module.functions[0].params}
        run(module, {name: value for name, value in arguments.items() if name in names})
        results.append(y)
    np.testing.assert_array_equal(*results)
