"""`pipeline_loops`: stages of buffers, the copies ahead, and loops that are left as they are."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.core.build import integer_value
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.nodes import Allocate, AsyncCopy, CommitGroup, WaitGroup
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_lower import lower_to_device, pipeline_loops

TEXT = """
@T.prim_func
def reverse(p: T.handle, x: T.handle, y: T.handle, n: T.int64, m: T.int64) -> None:
    T.stage("flat")
    P = T.match_buffer(p, (m,), "int64")
    X = T.match_buffer(x, (n, 8), "float32")
    Y = T.match_buffer(y, (m, 8), "float32")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(FIRST, m, annotations={"pipeline": STAGES}):
            row: T.int64 = P[i]
            S = T.alloc_buffer((8,), "float32", scope="SCOPE")
            for t in T.thread_binding(8, thread="threadIdx.x"):
                S[t] = COPIED
            for u in T.thread_binding(8, thread="threadIdx.x"):
                Y[i, u] = S[7 - u] + T.float32(row)
"""


def program(*, stages=3, first=0, scope="shared", copied="X[row, t]"):
    text = TEXT.replace("STAGES", str(stages)).replace("FIRST", str(first))
    module = parse_module(text.replace("SCOPE", scope).replace("COPIED", copied))
    verify(module)
    return module


def results(module, count):
    rows = np.arange(count)[::-1].copy()
    x = np.arange(8 * max(count, 1), dtype=np.float32).reshape(-1, 8)
    y = np.zeros((count, 8), np.float32)
    run(module, {"p": rows, "x": x, "y": y, "n": len(x), "m": count})
    return y


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("first", [0, 1])
def test_iterations_have_the_results_of_their_own_copies(stages, count, first):
    """There may be fewer iterations than stages, and the first one may have any number."""
    module = program(stages=stages, first=first)
    pipelined = pipeline_loops(module)
    verify(pipelined)
    np.testing.assert_array_equal(results(pipelined, count), results(module, count))
    np.testing.assert_array_equal(results(lower_to_device(module), count), results(module, count))


def test_a_stage_is_copied_while_the_others_are_in_use():
    pipelined = pipeline_loops(program(stages=4))
    (buffer,) = (node.buffer for node in collect(Allocate, pipelined))
    assert [integer_value(extent) for extent in buffer.shape] == [4, 8]
    assert [node.pending for node in collect(WaitGroup, pipelined)] == [2]
    assert len(collect(CommitGroup, pipelined)) == len(collect(AsyncCopy, pipelined)) == 4
    assert "pipeline" not in print_module(pipelined)


def test_a_wait_for_too_few_groups_is_found():
    text = print_module(pipeline_loops(program(stages=3)))
    broken = parse_module(text.replace("T.wait_group(1)", "T.wait_group(2)"))
    with pytest.raises(InterpreterError, match="which an asynchronous copy writes"):
        results(broken, 5)


def test_what_is_computed_is_stored_early_by_ordinary_statements():
    module = program(copied="X[row, t] * 2.0")
    pipelined = pipeline_loops(module)
    assert not collect(AsyncCopy, pipelined)
    assert collect(WaitGroup, pipelined)
    np.testing.assert_array_equal(results(pipelined, 5), results(module, 5))


def test_a_loop_without_copies_to_shared_memory_loses_the_mark():
    pipelined = pipeline_loops(program(scope="global"))
    assert not collect(WaitGroup, pipelined)
    assert "pipeline" not in print_module(pipelined)


def test_a_stage_that_an_earlier_iteration_may_still_read_is_not_filled():
    text = TEXT.replace("STAGES}", '4, "pending": 1}').replace("FIRST", "0")
    module = parse_module(text.replace("SCOPE", "shared").replace("COPIED", "X[row, t]"))
    pipelined = pipeline_loops(module)
    verify(pipelined)
    # Two iterations are copied before the loop, and each copies that after the next one.
    assert len(collect(CommitGroup, *pipelined.functions[0].body)) == 3
    assert [wait.pending for wait in collect(WaitGroup, *pipelined.functions[0].body)] == [1]
    assert "(i + 2) % 4" in print_module(pipelined)
    for count in (0, 1, 2, 7):
        np.testing.assert_array_equal(results(pipelined, count), results(module, count))
