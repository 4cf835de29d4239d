"""Loops with one iteration, as tuners produce them, do not prevent other primitives."""

from __future__ import annotations

from itertools import permutations

import pytest

from gossamer_schedule import ScheduleBuilder

FACTORS = [
    (2, 1, 16),
    (2, 16, 1),
    (1, 2, 16),
    (1, None, 16),
    (None, 1, 16),
    (None, 16, 1),
    (1, 1, 32),
]


@pytest.mark.parametrize("features", [None, 32])
@pytest.mark.parametrize("factors", FACTORS)
def test_a_copy_moves_into_loops_of_which_some_have_one_iteration(
    spmm, require_spmm, factors, features
):
    if features is None and None not in factors:
        factors = (None, *factors[1:])
    builder = ScheduleBuilder(spmm(features)).split("k", factors=factors)
    builder.reorder("k_0", "k_1", "j", "k_2").cache_write("csrmm", buffer="C", scope="local")
    builder.reverse_compute_at("csrmm_C_local", loop="k_1")
    require_spmm(builder.module, 32)


@pytest.mark.parametrize("order", list(permutations(("k_0", "k_1", "k_2"))))
def test_loops_of_one_iteration_may_be_outside_of_those_of_several(spmm, require_spmm, order):
    builder = ScheduleBuilder(spmm(12)).split("k", factors=(1, 12, 1)).reorder(*order)
    builder.cache_write("csrmm", buffer="C", scope="local")
    builder.cache_read("csrmm", buffer="B", scope="local").compute_at(
        "csrmm_B_local", loop=order[1]
    )
    builder.reorder(order[0], "j").reverse_compute_at("csrmm_C_local", loop=order[0])
    require_spmm(builder.module, 12)
