"""`peel_remainder`: whole groups have no conditions, and partial groups follow them."""

from __future__ import annotations

import pytest
from same_results import nodes, same_results

from gossamer_ir.nodes import Allocate, For, If
from gossamer_ir.traversal.walk import walk
from gossamer_lower import peel_remainder
from gossamer_testkit.examples import program

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
def test_a_loop_that_is_not_part_of_a_group_stays(name):
    before = program(KEPT[name])
    assert peel_remainder(before) == before


def test_registers_are_not_selected_by_a_variable():
    before = program("""
Z = T.alloc_buffer((2, 1), "float32", scope="local")
for i in T.serial((n + 1) // 2):
    for u in T.unroll(2):
        if i * 2 + u < n:
            for j in T.unroll(1):
                Z[u, j] = Z[u, j] + X[i * 2 + u]
if 0 < n:
    Y[0] = Z[0, 0] + Z[1, 0]
""")
    after = peel_remainder(before)
    assert {loop.kind for loop in nodes(after, For) if loop.var.startswith("u")} == {"unrolled"}
    same_results(before, after)
