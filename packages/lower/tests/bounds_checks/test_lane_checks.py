"""The bounds check of a ramp holds exactly if it holds in each of its lanes."""

from __future__ import annotations

import pytest

from gossamer_ir.analysis.lane_projection import LANE
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ZERO, add, index, index_var, mul
from gossamer_ir.core.conditions import is_false, is_true
from gossamer_ir.nodes import Broadcast, Compare, LaneReduce, Lanes, Ramp, Var
from gossamer_lower.bounds_checks.lane_checks import in_all_lanes, in_end_lanes

LANES = Lanes(4)
EXTENT = 8


@pytest.mark.parametrize("stride", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize(("op", "bound"), [("ge", 0), ("lt", EXTENT)])
def test_one_end_of_a_ramp_decides_for_all_lanes(stride, op, bound):
    for base in range(-2, EXTENT + 2):
        lane = add(index(base), mul(LANE, index(stride)))
        ramp = Ramp(index(base), index(stride), LANES)
        simplified = simplify(in_end_lanes(Compare(op, lane, index(bound)), ramp, lanes=LANES))
        values = [base + each * stride for each in range(LANES.count)]
        holds = all(value >= bound if op == "ge" else value < bound for value in values)
        assert (is_true(simplified), is_false(simplified)) == (holds, not holds), base


def test_lanes_that_a_mask_disables_are_not_checked():
    index_of_lanes, mask = Var("at", "int64x4"), Var("mask", "boolx4")
    less = Compare("lt", LANE, index_var("n"))
    every = in_all_lanes(less, index_of_lanes, mask=None, lanes=LANES)
    assert every == LaneReduce(
        "and", Compare("lt", index_of_lanes, Broadcast(index_var("n"), LANES))
    )
    masked = in_all_lanes(less, index_of_lanes, mask=mask, lanes=LANES)
    assert masked.value.op == "or"
    assert masked.value.lhs.operand == mask


def test_a_comparison_that_all_lanes_share_is_evaluated_once():
    shared = Compare("ge", index_var("i"), ZERO)
    assert in_all_lanes(shared, Var("at", "int64x4"), mask=None, lanes=LANES) == shared
    assert in_end_lanes(shared, Var("at", "int64x4"), lanes=LANES) == shared
