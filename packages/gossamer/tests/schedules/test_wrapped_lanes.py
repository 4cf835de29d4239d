"""Lanes whose index wraps around are masked one by one, not by the first lane."""

from __future__ import annotations

import numpy as np
import pytest
from stepwise_schedules import require_schedule, step

from gossamer_ir.script import parse_module

FIRST = """
@T.prim_func
def first(x: T.handle, y: T.handle, n: T.int64, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "DTYPE")
    Y = T.match_buffer(y, (n,), "DTYPE")
    for k in T.serial(8):
        with T.block("b"):
            vk = T.axis.spatial(8, k)
            T.where(CONDITION)
            Y[vk] = X[vk]
"""


FROM = {
    "vk + m < 100": (None, 100),
    "vk + m < n": (None, 8),
    "vk + m <= 99": (None, 100),
    "vk + 9223372036854775804 < 100": (2**63 - 4, 100),
}
"""The first value of the lanes in a condition, if it is not `m`, and their bound."""


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("condition", FROM)
@pytest.mark.parametrize("m", [2**63 - 5, 2**63 - 1, -(2**63), -3, 96])
def test_lanes_below_a_bound(condition, dtype, m):
    start, bound = FROM[condition]
    lanes = [((m if start is None else start) + k + 2**63) % 2**64 - 2**63 for k in range(8)]
    x = np.arange(1, 9).astype(dtype)
    expected = np.array(
        [value if lane < bound else 0 for value, lane in zip(x, lanes, strict=True)]
    )
    module = parse_module(FIRST.replace("CONDITION", condition).replace("DTYPE", dtype))
    arguments = {"x": x, "y": np.zeros(8, dtype), "n": 8, "m": m}
    case = (arguments, {"y": expected.astype(dtype)})
    require_schedule(module, [case], loop=[step("vectorize", "k")])
