"""`combine_lane_reductions`: lane reductions are combined only if that loses nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from same_results import nodes, same_results

from gossamer_ir.nodes import LaneReduce, Store, TransposeReduce
from gossamer_lower import combine_lane_reductions, unroll_loops
from gossamer_testkit.examples import program

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
