"""`lower_atomics`: accumulations of iterations that share elements become atomic updates."""

from __future__ import annotations

import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Allocate, Atomic, For, Store
from gossamer_lower import hoist_allocations, lower_atomics, outline_parallel
from gossamer_testkit.examples import program

MARKED = """
for i in T.parallel(n, annotations={"atomic": True, "origin": 1}):
    BODY
"""


def atomics_of(body):
    module = program(MARKED.replace("BODY", body.replace("\n", "\n    ")))
    return lower_atomics(outline_parallel(module)).functions[1]


@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_shared_elements_are_combined_atomically_and_the_mark_goes(op):
    value = "Y[P[i]] + X[i]" if op == "add" else f"T.{op}(X[i], Y[P[i]])"
    (loop,) = atomics_of(f"Y[P[i]] = {value}").body
    assert loop.annotations == (("origin", 1),)
    (step,) = loop.body
    assert (type(step), step.op, step.buffer) == (Atomic, op, "Y")


def test_what_an_iteration_allocates_is_its_own():
    (loop,) = atomics_of(
        'S = T.alloc_buffer((1,), "float32")\nS[0] = X[i]\nY[P[i]] = Y[P[i]] + S[0]'
    ).body
    assert [type(stmt) for stmt in loop.body] == [Allocate, Store, Atomic]


def test_what_is_allocated_once_for_all_iterations_of_a_chunk_is_its_own():
    body = """for j in T.serial(P[i]):
    S = T.alloc_buffer((T.vscale(),), "float32", scope="local")
    S[0] = X[i]
    Y[P[i]] = Y[P[i]] + S[0]"""
    module = outline_parallel(program(MARKED.replace("BODY", body.replace("\n", "\n    "))))
    worker = lower_atomics(hoist_allocations(module)).functions[1]
    allocated, loop = worker.body
    assert isinstance(allocated, Allocate)
    ((fill, step),) = (stmt.body for stmt in loop.body)
    assert (type(fill), fill.buffer, type(step), step.buffer) == (Store, "S", Atomic, "Y")


@pytest.mark.parametrize(
    "body",
    [
        "Y[P[i]] = X[i]",
        "Y[P[i]] = Y[P[i]] * X[i]",
        "Y[P[i]] = Y[P[i] + 1] + X[i]",
        "Y[P[i]] = Y[P[i]] + Y[0]",
        "a: T.float32 = Y[0]\nY[P[i]] = Y[P[i]] + a",
    ],
)
def test_anything_else_is_refused(body):
    with pytest.raises(UnsupportedError) as caught:
        atomics_of(body)
    assert caught.value.code == "lower.lower_atomics.not_atomic"


@pytest.mark.parametrize("lanes", ["8", "4 * T.vscale()"])
def test_vectors_are_combined_lane_by_lane(lanes):
    ramp = f"T.ramp(P[i], 1, {lanes})"
    (loop,) = atomics_of(f"Y[{ramp}] = Y[{ramp}] + X[T.ramp(0, 1, {lanes})]").body
    kept, fill, by_lane = loop.body
    assert (type(kept), type(fill), type(by_lane)) == (Allocate, Store, For)
    assert [type(stmt) for stmt in by_lane.body] == [Atomic]
