"""Loops that are fused and split again: accesses to consecutive elements are recognized."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder

COPY = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] + 1.0
"""


def fused_and_split(module, factors):
    schedule = ScheduleBuilder(module)
    (fused,) = schedule.fuse("i", "j").names
    return schedule, schedule.split(fused, factors=factors).names


def results(module):
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    result = np.zeros((8, 8), np.float32)
    unused = {"z": result.copy(), "v": np.zeros(64, np.float32), "w": np.zeros(64, np.float32)}
    run(module, unused | {"x": x, "y": result, "p": np.zeros(9, np.int32), "n": 8})
    np.testing.assert_array_equal(result, x + 1)


def test_a_quotient_along_a_loop_without_iterations_stays(program):
    body = COPY.replace("i in T.serial(8)", "i in T.serial(0)")
    body = body.replace("X[vi, vj]", "X[i // 8, vj]")
    schedule = ScheduleBuilder(program(body)).split("i", factors=(8, None))
    assert verify(schedule.module).stage == "loop"


ROWS = """
for i in T.serial(n % 9):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
"""


@pytest.mark.parametrize("factors", [(None, 2, 8), (None, 3, 4), (None, 3), (5, None, 8)])
def test_rows_that_a_split_adds_to_a_fused_loop_are_not_initialized(program, factors):
    schedule, _ = fused_and_split(program(ROWS), factors)
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    sums = np.full(64, 7, np.float32)
    unused = {"y": x.copy(), "z": x.copy(), "w": sums.copy(), "p": np.zeros(9, np.int32)}
    run(schedule.module, unused | {"x": x, "v": sums, "n": 5})
    np.testing.assert_array_equal(sums[:5], x.sum(axis=1)[:5])
    assert np.all(sums[5:] == 7)


@pytest.mark.parametrize("factors", [(None, 4), (None, 8), (4, 4, 4), (8, 2, 4), (None, 2, 2)])
def test_lanes_of_a_fused_loop_are_next_to_each_other(program, factors):
    schedule, names = fused_and_split(program(COPY), factors)
    schedule.parallel(names[0])
    schedule.vectorize(names[-1], remainder="masked")
    verify(schedule.module)
    results(schedule.module)


@pytest.mark.parametrize("factors", [(None, 3), (None, 16)])
def test_lanes_that_cross_rows_are_gathered_and_scattered(program, factors):
    schedule, names = fused_and_split(program(COPY), factors)
    schedule.vectorize(names[-1])
    verify(schedule.module)
    results(schedule.module)
