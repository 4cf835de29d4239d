"""Each construct is found in a program that has it, and in no other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_ir.core.annotations import CHECK_INDEX_ARRAYS
from gossamer_ir.script import parse_module
from gossamer_lower.constructs import CONSTRUCTS, has_construct
from gossamer_lower.iterations.lower_iterations import lower_iterations
from gossamer_testkit import script
from gossamer_testkit.examples import SCALE, program

PLAIN = program("for i in T.serial(n): Y[i] = X[i]")
SPMM = parse_module(script("bsr_spmm"))
CHECKED = ((CHECK_INDEX_ARRAYS, True),)


def in_loop(annotations):
    return program(f"for i in T.serial(n, annotations={annotations}): Y[i] = X[i]")


PROGRAMS = {
    "iterations": SPMM,
    "axes": lower_iterations(SPMM),
    "blocks": SCALE,
    "declared scratch": program('Z = T.decl_buffer((n,), "float32", scope="local")'),
    "vectorized loops": program("for i in T.vectorized(4): Y[i] = X[i]"),
    "unrolled loops": program("for i in T.unroll(4): Y[i] = X[i]"),
    "parallel loops": program("for i in T.parallel(n): Y[i] = X[i]"),
    "reducers": program("""
        f = T.comm_reducer(lambda a, b: (a + b,), (T.float32(0),))
        for i in T.serial(n): Y[0] = f(Y[0], X[i])
    """),
    "declared reducers": program("""
        f = T.comm_reducer(lambda a, b: (a + b,), (T.float32(0),))
        for i in T.serial(n): Y[0] = f(Y[0], X[i])
    """),
    "bounds checks": program("""
        T.guard(n > 0, X)
        Y[0] = X[0]
    """),
    "loops to peel": in_loop({"peel": "last"}),
    "scalable extents": program('Z = T.alloc_buffer((4 * T.vscale(),), "float32", scope="local")'),
    "lane reductions": program("Y[0] = T.lane_reduce('add', X[T.ramp(0, 1, 4)])"),
    "windows": in_loop({"window": 16}),
    "gathers of equal indices": in_loop({"equal_indices": True}),
    "masks in variables": program("""
        found: T.boolx4 = P[T.ramp(0, 1, 4)] < T.broadcast(n, 4)
        Y[T.ramp(0, 1, 4)] = T.Select(found, X[T.ramp(0, 1, 4)], X[T.ramp(4, 1, 4)])
    """),
    "searches": program("Y[0] = X[T.search('lower', P, begin=0, end=n, value=5)]"),
    "bits of words": program("Y[0] = X[T.find_nth_bit(P[0], 2)]"),
    "allocations of varied size": program("Z = T.alloc_buffer((n,), 'float32')"),
    "atomic loops": program(
        "for i in T.parallel(n, annotations={'atomic': True}): Y[0] = Y[0] + X[i]"
    ),
    "checked index arrays": replace(
        SCALE, functions=(replace(SCALE.functions[0], annotations=CHECKED),)
    ),
}


def test_there_is_a_program_with_each_construct():
    assert PROGRAMS.keys() == CONSTRUCTS.keys()


@pytest.mark.parametrize("construct", PROGRAMS)
def test_a_construct_is_found_in_its_program_only(construct):
    assert has_construct(PROGRAMS[construct], construct)
    assert not has_construct(PLAIN, construct)
