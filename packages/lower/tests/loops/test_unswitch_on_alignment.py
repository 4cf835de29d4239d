"""Loops over aligned tiles: masked if the array is not aligned, without masks if it is."""

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Binary, For, If, Load, ParallelFor, Ramp, Store
from gossamer_ir.traversal.walk import collect, stmts, walk
from gossamer_ir.verify import verify
from gossamer_lower import (
    eliminate_redundant_masks,
    lower_to_flat,
    outline_parallel,
    unroll_loops,
    unswitch_on_alignment,
    vectorize_loops,
)
from gossamer_testkit.examples import program

EARLY = 'T.reinterpret("int64", x) // 4 % 4'
SUMS = f"""
if n > 7:
    for i in T.serial(2):
        for a in T.unroll(3):
            for l in T.vectorized(4, annotations={{"remainder": "masked"}}):
                if a * 4 + l - {EARLY} >= 0 and a * 4 + l - {EARLY} < 8:
                    Y[i] = Y[i] + X[a * 4 + l - {EARLY}]
"""


def flat():
    return lower_to_flat(program(SUMS))


def bodies(module, kind):
    return [stmt for stmt in stmts(module.functions[0].body) if isinstance(stmt, kind)]


def placed(array, elements):
    memory = np.full(array.size + 16, np.nan, np.float32)
    first = (-memory.ctypes.data % 16) // 4 + elements
    placed_array = memory[first : first + array.size]
    placed_array[:] = array
    return placed_array


@pytest.mark.parametrize("elements", range(4))
@pytest.mark.parametrize("size", [0, 8, 11])
def test_sums_are_those_of_the_program(elements, size):
    x = np.arange(size, dtype=np.float32)
    sums = np.zeros(size, np.float32)
    p = np.zeros(size, np.int64)
    run(flat(), {"x": placed(x, elements), "y": sums, "p": p, "n": size})
    np.testing.assert_array_equal(sums[:3], [28, 28, 0][:size])


def test_the_loop_is_there_for_arrays_that_begin_with_a_vector():
    module = flat()
    (asked,) = [stmt for stmt in bodies(module, If) if "handle" in repr(stmt.condition)]
    sums = [
        [node for node in walk(*body) if isinstance(node, Binary) and node.op == "add"]
        for body in (asked.then_body, asked.else_body)
    ]
    assert [len(stores) for stores in sums] == [4, 3]


COPIED = f"""
for i in T.serial(n):
    for a in T.unroll(3):
        for l in T.vectorized(4, annotations={{"remainder": "masked"}}):
            if a * 4 + l - {EARLY} >= 0 and a * 4 + l - {EARLY} < 8 and n > 7:
                Y[a * 4 + l - {EARLY}] = X[a * 4 + l - {EARLY}]
"""


@pytest.mark.parametrize("elements", range(4))
@pytest.mark.parametrize("size", [0, 8, 11])
def test_masked_vectors_copy_the_elements_of_the_program(elements, size):
    x, copied = np.arange(size, dtype=np.float32), np.full(size, 9, np.float32)
    p = np.zeros(size, np.int64)
    run(lower_to_flat(program(COPIED)), {"x": placed(x, elements), "y": copied, "p": p, "n": size})
    np.testing.assert_array_equal(copied[:8], x[:8])


def test_arrays_that_begin_at_an_aligned_address_need_no_masks():
    (asked,) = [
        stmt
        for stmt in bodies(lower_to_flat(program(COPIED)), If)
        if "floormod" in repr(stmt.condition)
    ]
    masks = [
        [store.predicate is not None for store in collect(Store, *body)]
        for body in (asked.then_body, asked.else_body)
    ]
    assert masks == [[False, False], [True, False, True]]


def test_without_a_condition_on_an_address_nothing_is_doubled():
    after = lower_to_flat(program("for i in T.serial(n):\n    if n > 8: Y[i] = X[i]"))
    assert len(bodies(after, For)) == 1


def test_an_address_that_no_condition_uses_doubles_nothing():
    after = lower_to_flat(program(f"for i in T.serial(n): Y[i] = T.float32({EARLY})"))
    assert unswitch_on_alignment(after) == after


BESIDE_ANOTHER_LOOP = f"""
for i in T.serial(n):
    if n > 7:
        for a in T.unroll(3):
            for l in T.vectorized(4, annotations={{"remainder": "masked"}}):
                if a * 4 + l - {EARLY} >= 0 and a * 4 + l - {EARLY} < 8:
                    Y[a * 4 + l - {EARLY}] = X[a * 4 + l - {EARLY}]
    for j in T.serial(n):
        Y[j] = Y[j] + 1.0
"""


def test_only_the_statement_that_depends_on_addresses_is_doubled_beside_another_loop():
    module = lower_to_flat(program(BESIDE_ANOTHER_LOOP))
    assert [loop.var for loop in bodies(module, For)] == ["i", "j"]
    (asked,) = [stmt for stmt in bodies(module, If) if "floormod" in repr(stmt.condition)]
    masks = [
        [store.predicate is not None for store in collect(Store, *body)]
        for body in (asked.then_body, asked.else_body)
    ]
    assert masks == [[False, False], [True, False, True]]


def test_a_loop_in_an_iteration_with_another_loop_is_doubled_itself():
    before = program("""
for i in T.serial(n):
    for j in T.serial(n):
        if T.reinterpret("int64", x) % 64 > 0:
            Y[j] = X[i]
    for k in T.serial(n):
        Y[k] = Y[k] + 1.0
""")
    module = verify(unswitch_on_alignment(outline_parallel(before)))
    assert [loop.var for loop in bodies(module, For)] == ["i", "j", "j_1", "k"]


@pytest.mark.parametrize("elements", range(4))
@pytest.mark.parametrize("size", [0, 8, 11])
def test_a_statement_beside_another_loop_computes_what_the_program_does(elements, size):
    x, y = np.arange(size, dtype=np.float32), np.full(size, 9, np.float32)
    p = np.zeros(size, np.int64)
    flat = lower_to_flat(program(BESIDE_ANOTHER_LOOP))
    run(flat, {"x": placed(x, elements), "y": y, "p": p, "n": size})
    expected = np.full(size, 9, np.float32)
    for _ in range(size):
        expected[:8] = x[:8]
        expected += 1
    np.testing.assert_array_equal(y, expected)


def test_the_middle_vectors_have_no_masks():
    module = eliminate_redundant_masks(unroll_loops(vectorize_loops(program(SUMS))))
    loads = [
        node
        for node in walk(*module.functions[0].body)
        if isinstance(node, Load) and node.buffer == "X" and isinstance(node.indices[-1], Ramp)
    ]
    assert [load.predicate is None for load in loads] == [False, True, False]


def test_a_copy_of_a_loop_that_runs_in_parallel_has_names_of_its_own():
    before = program("""
for i in T.serial(n):
    for j in T.parallel(n, weight=j):
        Y[i] = X[j]
    if T.reinterpret("int64", x) % 64 > 0:
        Y[i] = 0.0
""")
    module = verify(unswitch_on_alignment(outline_parallel(before)))
    loops = collect(ParallelFor, *module.functions[0].body)
    assert len({each.var for each in loops}) == len(loops) == 2
    assert [each.weight.name for each in loops] == [each.var for each in loops]
