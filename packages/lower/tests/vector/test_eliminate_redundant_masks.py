"""`eliminate_redundant_masks`: a mask that all lanes pass is removed."""

from __future__ import annotations

import pytest

from gossamer_lower import eliminate_redundant_masks
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text

RUNS = "Y[T.ramp(0, 1, 4)] = T.Select({0}, X[T.ramp(0, 1, 4)], X[T.ramp(4, 1, 4)])"
ALWAYS = {
    "at least": "T.ramp(4 - n % 4, 1, 4) >= T.broadcast(1, 4)",
    "below": "T.ramp(n % 4, 1, 4) < T.broadcast(7, 4)",
    "constants": "T.ramp(0, 2, 4) < T.broadcast(7, 4)",
}
SOMETIMES = {
    "too many lanes": "T.ramp(n % 4, 1, 4) < T.broadcast(6, 4)",
    "unknown": "T.ramp(n, 1, 4) < T.broadcast(7, 4)",
}


@pytest.mark.parametrize("name", ALWAYS)
def test_a_mask_that_all_lanes_pass_is_left_out(name):
    before = program(RUNS.format(ALWAYS[name]))
    assert body_text(eliminate_redundant_masks(before)) == "Y[T.ramp(0, 1, 4)] = X[T.ramp(0, 1, 4)]"


@pytest.mark.parametrize("name", SOMETIMES)
def test_other_masks_stay(name):
    before = program(RUNS.format(SOMETIMES[name]))
    assert eliminate_redundant_masks(before) == before
