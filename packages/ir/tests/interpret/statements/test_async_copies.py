"""Asynchronous copies: elements have their values after a wait, and for other threads after a barrier."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify

TEXT = """
@T.prim_func
def reversed_blocks(x: T.handle, y: T.handle) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (64,), "float32")
    Y = T.match_buffer(y, (64,), "float32")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        S = T.alloc_buffer((32,), "float32", scope="shared")
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.async_copy():
                S[T.ramp(t * 4, 1, 4)] = X[T.ramp(b * 32 + t * 4, 1, 4)]
            COMMIT
            with T.async_copy():
                S2[t] = X[t]
            WAIT
            BARRIER
            for i in T.serial(4):
                Y[b * 32 + t * 4 + i] = S[31 - t * 4 - i]
"""
PLAIN = {"commit": "T.commit_group()", "wait": "T.wait_group(0)", "barrier": "T.barrier()"}


def program(**changes):
    text = TEXT.replace(
        "        for t in",
        '        S2 = T.alloc_buffer((8,), "float32", scope="shared")\n        for t in',
    )
    for name, line in {**PLAIN, **changes}.items():
        text = text.replace(name.upper(), line)
    module = parse_module(text)
    verify(module)
    return module


def called(module):
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(module, {"x": x, "y": y})
    return y


def test_elements_have_their_values_after_a_wait():
    """The copy after the commit is in no group, so nothing waits for it, and nothing reads it."""
    expected = np.arange(64, dtype=np.float32).reshape(2, 32)[:, ::-1].ravel()
    np.testing.assert_array_equal(called(program()), expected)


@pytest.mark.parametrize(
    "changes", [{"wait": "pass"}, {"wait": "T.wait_group(1)"}, {"commit": "pass"}]
)
def test_an_element_that_nothing_waited_for_must_not_be_read(changes):
    with pytest.raises(InterpreterError, match="which an asynchronous copy writes"):
        called(program(**changes))


def test_other_threads_need_a_barrier_after_the_wait():
    with pytest.raises(InterpreterError, match="no thread has written"):
        called(program(barrier="pass"))
    with pytest.raises(InterpreterError, match="which an asynchronous copy writes"):
        called(program(wait="T.barrier()", barrier="T.wait_group(0)"))


BLOCK = """
@T.prim_func
def shifted(x: T.handle, y: T.handle) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (32,), "float32")
    Y = T.match_buffer(y, (32,), "float32")
    S = T.alloc_buffer((4, 8), "float32", scope="shared")
    for r in T.serial(4):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.async_copy():
                S[r, t] = X[r * 8 + t]
        T.commit_group()
    for r_1 in T.serial(4):
        WAIT
        for u in T.thread_binding(8, thread="threadIdx.x"):
            Y[r_1 * 8 + u] = S[r_1, 7 - u]
"""


@pytest.mark.parametrize(("pending", "is_complete"), [(0, True), (1, False), (3, False)])
def test_outside_of_loops_over_threads_all_of_them_wait(pending, is_complete):
    text = BLOCK.replace("WAIT", f"T.wait_group({pending})")
    module = parse_module(text)
    if is_complete:
        expected = np.arange(64, dtype=np.float32)[:32].reshape(4, 8)[:, ::-1].ravel()
        x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
        run(module, {"x": x, "y": y})
        np.testing.assert_array_equal(y, expected)
    else:
        with pytest.raises(
            InterpreterError, match=r"S\[\d, 7\], which an asynchronous copy writes"
        ):
            run(module, {"x": np.zeros(32, np.float32), "y": np.zeros(32, np.float32)})
