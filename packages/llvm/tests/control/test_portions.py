"""A long loop asks between portions of its iterations whether to stop."""

from __future__ import annotations

import numpy as np
import pytest
from native_kernel import run_native

from gossamer_ir.core.build import ZERO, add, index, index_var
from gossamer_ir.interchange.kernel_abi import INTERRUPTED, LONG, OK, SHORT
from gossamer_ir.nodes import Buffer, For, Function, Load, Module, Param, Store

N = index_var("n")
ROWS = 1 << 16


def nested_loops():
    """A module that adds 1 to each element of X, by a loop in a loop."""
    row = index_var("i")
    step = Store("X", (row,), add(Load("X", (row,), "int64"), index(1)))
    loops = For("i", ZERO, N, (For("j", ZERO, index(1), (step,)),))
    params = (Param("x", "handle"), Param("n", "int64"))
    buffers = (Buffer("X", (N,), "int64", "x"),)
    return Module("flat", (Function("main", params, (loops,), buffers=buffers),), "main")


def questions(answer):
    """Run the loops; return the number of questions, when each is answered with the same number."""
    out, asked = np.zeros(ROWS, np.int64), []

    def is_interrupted(since):
        asked.append(since[0])
        return answer

    assert run_native(nested_loops(), [out], ROWS, is_interrupted=is_interrupted).status == OK
    assert (out == 1).all()
    return len(asked)


def test_portions_have_equal_lengths_unless_they_are_short_or_long():
    assert questions(0) == 4096
    assert questions(SHORT) < 10
    assert questions(LONG) == questions_of_halves()


def questions_of_halves():
    """The number of portions that begin with 16 iterations, of which each is half as long, down to one."""
    left, step, count = ROWS, ROWS // 4096, 0
    while left > 0:
        step, count = (step + 1) // 2, count + 1
        left -= step
    return count


@pytest.mark.parametrize("stopping", [1, 2, 100])
def test_a_loop_that_is_stopped_has_run_whole_portions(stopping):
    out, asked = np.zeros(ROWS, np.int64), []

    def is_interrupted(since):
        asked.append(since[0])
        return int(len(asked) == stopping)

    run = run_native(nested_loops(), [out], ROWS, is_interrupted=is_interrupted)
    assert run.status == INTERRUPTED
    done = (stopping - 1) * (ROWS // 4096)
    assert out.tolist() == [1] * done + [0] * (ROWS - done)


def test_a_loop_runs_at_once_if_nobody_may_stop_it():
    out = np.zeros(ROWS, np.int64)
    assert run_native(nested_loops(), [out], ROWS).status == OK
    assert (out == 1).all()
