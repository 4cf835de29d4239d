"""Partial groups are peeled, and lane reductions are combined only if that loses nothing."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate, For, If, LaneReduce, Store, TransposeReduce
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import combine_lane_reductions, peel_remainder, unroll_loops
from gossamer_testkit.examples import program

SIZES = [0, 1, 3, 4, 5, 8, 11, 40]


def same_results(before, after, *, sizes=SIZES):
    assert diagnostics(after) == ()
    for n in sizes:
        results = []
        for module in (before, after):
            generator = np.random.default_rng(n)
            x, y = generator.integers(-9, 9, (2, n)).astype(np.float32)
            p = generator.integers(0, n + 1, n)
            run(module, {"x": x, "y": y, "p": p, "n": n})
            results.append((x, y))
        np.testing.assert_array_equal(results[0], results[1])


def nodes(module, kind):
    return [node for node in walk(module) if isinstance(node, kind)]


# --- partial groups

PEELED = {
    "an element of a row": """
for i in T.serial((n + 3) // 4):
    for u in T.unroll(4):
        if i * 4 + u < n:
            for j in T.serial(P[i * 4 + u]):
                Y[i * 4 + u] = Y[i * 4 + u] + X[j]
""",
    "what stands beside it, with a buffer of their own": """
for i in T.serial((n + 3) // 4):
    Z = T.alloc_buffer((4,), "float32", scope="local")
    for v in T.vectorized(4):
        if i * 4 + v < n:
            Z[v] = 1.0
    for u in T.unroll(4):
        if i * 4 + u < n and n > 4:
            for j in T.serial(P[i * 4 + u]):
                Z[u] = Z[u] + X[j]
    for v_1 in T.vectorized(4):
        if i * 4 + v_1 < n:
            Y[i * 4 + v_1] = Z[v_1]
    for u_1 in T.unroll(2):
        if i < n:
            Y[i] = Y[i] + 1.0
""",
    "a bound that is read": """
if n > 2:
    for i in T.serial((T.int64(T.int32(P[1])) + 3) // 4):
        for u in T.unroll(4):
            if i * 4 + u < T.int64(T.int32(P[1])):
                for j in T.serial(2):
                    Y[i * 4 + u] = Y[i * 4 + u] + X[j]
""",
    "extents that hold under the bound": """
for i in T.serial((n + 3) // 4):
    for u in T.unroll(4):
        if i * 4 + u < n:
            Y[i * 4 + u] = 0.0
        for j in T.serial(T.if_then_else(i * 4 + u < n, n, 0)):
            Y[i * 4 + u] = Y[i * 4 + u] + X[j]
""",
}
KEPT = {
    "a loop of one statement, which is as good as a branch": """
for i in T.serial((n + 3) // 4):
    for u in T.unroll(4):
        if i * 4 + u < n:
            Y[i * 4 + u] = X[i * 4 + u]
""",
    "a bound that the loop changes": """
for i in T.serial(n // 4):
    for u in T.unroll(4):
        if i * 4 + u < P[0]:
            for j in T.serial(2):
                P[0] = P[0] - 1
""",
    "a bound that the loop computes": """
for i in T.serial(n // 4):
    for u in T.unroll(4):
        limit = P[i] - u
        if i * 4 + u < limit:
            for j in T.serial(2):
                Y[i * 4 + u] = Y[i * 4 + u] + X[j]
""",
    "a bound on every other iteration": """
for i in T.serial((n + 7) // 8):
    for u in T.unroll(4):
        if i * 8 + u * 2 < n:
            for j in T.serial(P[i * 8 + u * 2]):
                Y[i * 8 + u * 2] = Y[i * 8 + u * 2] + X[j]
""",
    "a bound from below": """
for i in T.serial(n // 4):
    for u in T.unroll(4):
        if 2 < i * 4 + u:
            for j in T.serial(2):
                Y[i * 4 + u] = Y[i * 4 + u] + X[j]
""",
    "a buffer that is used after it": """
for i in T.serial(n // 4):
    for u in T.unroll(4):
        if i * 4 + u < n:
            for j in T.serial(2):
                Y[i * 4 + u] = Y[i * 4 + u] + X[j]
    Z = T.alloc_buffer((1,), "float32", scope="local")
    Z[0] = X[i]
    for u_1 in T.unroll(4):
        if i * 4 + u_1 < n:
            for j_1 in T.serial(2):
                Y[i * 4 + u_1] = Y[i * 4 + u_1] + Z[0]
    Y[i] = Z[0]
""",
}


def conditions_of_whole_groups(module):
    """The conditions inside the first version of each peeled loop."""
    peeled = [node for node in nodes(module, If) if node.else_body]
    return [
        node
        for outer in peeled
        for stmt in outer.then_body
        for node in walk(stmt)
        if isinstance(node, If)
    ]


@pytest.mark.parametrize("name", PEELED)
def test_whole_groups_need_no_conditions(name):
    before = program(PEELED[name])
    after = peel_remainder(before)
    assert len([node for node in nodes(after, If) if node.else_body]) == 1
    assert {str(node.condition) for node in conditions_of_whole_groups(after)} <= {
        str(node.condition) for node in nodes(program("if n > 4:\n    Y[0] = X[0]"), If)
    }
    same_results(before, after)


def test_a_buffer_of_the_group_is_allocated_in_both_forms():
    after = peel_remainder(program(PEELED["what stands beside it, with a buffer of their own"]))
    assert len({node.buffer.name for node in nodes(after, Allocate)}) == 2
    assert sum(loop.kind == "unrolled" for loop in nodes(after, For)) == 2


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_group_stays(name):
    before = program(KEPT[name])
    assert peel_remainder(before) == before


# --- reductions of lanes

LANES = 'T.lane_reduce("add", X[T.ramp({0}, 1, 4)])'


def sums(count, *, store="Y[{0}] = " + LANES):
    return "if n > 31:\n" + "\n".join(
        f"    {line}" for u in range(count) for line in store.format(u).splitlines()
    )


COMBINED = {
    "stores": (sums(4), [4]),
    "a group of eight and one of four": (sums(14), [8, 4]),
    "on top of the identity": (sums(4, store="Y[{0}] = 0.0\nY[{0}] = Y[{0}] + " + LANES), [4]),
    "through elements of a local buffer": (
        'if n > 31:\n    Z = T.alloc_buffer((4,), "float32", scope="local")\n'
        + sums(4, store="Z[{0}] = 0.0\nZ[{0}] = Z[{0}] + " + LANES + "\nY[P[0] * 0 + {0}] = Z[{0}]")
        .partition("\n")[2]
        .replace("P[0] * 0", "n - 8"),
        [4],
    ),
    "through local buffers that are filled between": (
        sums(
            8,
            store='W{0} = T.alloc_buffer((4,), "float32", scope="local")\n'
            "W{0}[T.ramp(0, 1, 4)] = X[T.ramp({0} + 1, 1, 4)]\n"
            "for j{0} in T.serial(3):\n"
            "    W{0}[T.ramp(0, 1, 4)] = W{0}[T.ramp(0, 1, 4)] + X[T.ramp({0} + j{0}, 1, 4)]\n"
            'Y[{0} + 2] = T.lane_reduce("add", W{0}[T.ramp(0, 1, 4)])',
        ),
        [8],
    ),
    "into a local buffer": (
        'if n > 31:\n    Z = T.alloc_buffer((4,), "float32", scope="local")\n'
        + sums(4, store="Z[{0}] = " + LANES).partition("\n")[2]
        + "\n    Y[T.ramp(0, 1, 4)] = Z[T.ramp(0, 1, 4)]",
        [4],
    ),
    "the maximum": (sums(4, store='Y[{0}] = T.lane_reduce("max", X[T.ramp({0}, 1, 4)])'), [4]),
}
LEFT_ALONE = {
    "three": sums(3),
    "backwards": sums(4, store="Y[7 - {0}] = " + LANES),
    "every other element": sums(4, store="Y[{0} * 2] = " + LANES),
    "elements that are summed themselves": sums(
        4, store='Y[{0}] = T.lane_reduce("add", Y[T.ramp({0} + 1, 1, 4)])'
    ),
    "elements that are read between": sums(4, store="Y[{0}] = " + LANES + "\nX[{0} + 20] = Y[{0}]"),
    "the summed values change in between": sums(
        4, store="Y[{0}] = " + LANES + "\nX[{0} + 1] = 2.0"
    ),
    "the buffer is written between": sums(4, store="Y[{0}] = " + LANES + "\nY[{0} + 9] = 2.0"),
    "not from the identity": sums(4, store="Y[{0}] = 1.0\nY[{0}] = Y[{0}] + " + LANES),
    "from another reducer's identity": sums(
        4, store='Y[{0}] = 0.0\nY[{0}] = T.max(Y[{0}], T.lane_reduce("max", X[T.ramp({0}, 1, 4)]))'
    ),
    "under conditions": sums(4, store="if n > 33:\n    Y[{0}] = " + LANES),
    "under predicates": sums(4, store="T.store(Y, {0}, predicate=n > 33, value=" + LANES + ")"),
    "of three lanes": sums(4, store='Y[{0}] = T.lane_reduce("add", X[T.ramp({0}, 1, 3)])'),
    "of scalable lanes": sums(
        4, store='Y[{0}] = T.lane_reduce("add", X[T.ramp({0}, 1, 2 * T.vscale())])'
    ),
    "at places that are written": sums(4, store="P[0] = 0\nY[P[0] % 8 + {0}] = " + LANES),
}


@pytest.mark.parametrize("name", COMBINED)
def test_reductions_into_consecutive_elements_are_combined(name):
    text, counts = COMBINED[name]
    before = program(text)
    after = combine_lane_reductions(before)
    assert [len(node.values) for node in nodes(after, TransposeReduce)] == counts
    left = len(nodes(before, LaneReduce)) - sum(counts)
    assert len(nodes(after, LaneReduce)) == left
    same_results(before, after, sizes=[0, 32, 50])


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_reductions_that_are_no_group_stay(name):
    before = program(LEFT_ALONE[name])
    assert combine_lane_reductions(before) == before


def test_one_local_element_that_is_used_again_is_kept():
    before = unroll_loops(
        program("""
if n > 31:
    Z = T.alloc_buffer((1,), "float32", scope="local")
    for u in T.unroll(4):
        Z[0] = T.lane_reduce("add", X[T.ramp(u, 1, 4)])
        Y[u] = Z[0]
    Y[9] = Z[0]
""")
    )
    after = combine_lane_reductions(before)
    assert nodes(after, TransposeReduce) == []
    same_results(before, after, sizes=[32])


def test_buffers_of_one_handle_are_one_memory():
    before = program(sums(4, store="Y[{0}] = " + LANES))
    function = before.functions[0]
    x, y, *others = function.buffers
    shared = replace(
        before, functions=(replace(function, buffers=(replace(x, handle=y.handle), y, *others)),)
    )
    assert combine_lane_reductions(shared) == shared


def test_a_vector_store_replaces_the_scalar_ones():
    after = combine_lane_reductions(program(sums(8)))
    assert len(nodes(after, Store)) == 1
