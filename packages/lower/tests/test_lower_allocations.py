"""Allocations stand as deep as they may, and are as small as they may."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.build import integer_value
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate, For, If
from gossamer_ir.script import parse_module, print_expr
from gossamer_ir.walk import walk
from gossamer_lower import lower_blocks, plan_allocations

PRIVATE = """
@T.prim_func
def scaled(x: T.handle, y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, 32), "float32")
    Y = T.match_buffer(y, (m, 32), "float32")
    tile = T.decl_buffer((m, 32), "float32", scope="local")
    for i in T.serial(m):
        for k_0 in T.serial(4):
            for k_1 in T.serial(8):
                tile[i, k_0 * 8 + k_1] = X[i, k_0 * 8 + k_1]
            for k_2 in T.serial(8):
                Y[i, k_0 * 8 + k_2] = tile[i, k_0 * 8 + k_2] + X[i, k_0 * 8 + k_2]
"""

CARRIED = """
@T.prim_func
def running(x: T.handle, y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    total = T.decl_buffer((1,), "float32", scope="local")
    total[0] = 0.0
    for i in T.serial(m):
        total[0] = total[0] + X[i]
        Y[i] = total[0]
"""

ALLOCATED = """
@T.prim_func
def gathered(p: T.handle, x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m + 1,), "int64")
    X = T.match_buffer(x, (n, 32), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    for i in T.serial(m):
        for j in T.serial(P[i + 1] - P[i]):
            row = T.alloc_buffer((n, 32), "float32", scope="local")
            for k in T.serial(32):
                row[P[i] + j, k] = X[P[i] + j, k]
            for k_1 in T.serial(32):
                Y[i] = Y[i] + row[P[i] + j, k_1]
"""


def planned(text):
    return plan_allocations(lower_blocks(parse_module(text)))


def allocation(module):
    """The one allocation, and the loops around it."""

    def search(body, loops):
        for stmt in body:
            if isinstance(stmt, Allocate):
                return stmt.buffer, loops
            if isinstance(stmt, For):
                found = search(stmt.body, [*loops, stmt.var])
                if found:
                    return found
            if isinstance(stmt, If):
                found = search((*stmt.then_body, *stmt.else_body), loops)
                if found:
                    return found
        return None

    return search(module.functions[0].body, [])


def test_a_buffer_with_its_own_elements_in_each_iteration_moves_inside_and_shrinks():
    buffer, loops = allocation(planned(PRIVATE))
    assert loops == ["i", "k_0"]
    assert [integer_value(extent) for extent in buffer.shape] == [8]


def test_a_value_that_lives_from_iteration_to_iteration_stays_outside():
    buffer, loops = allocation(planned(CARRIED))
    assert loops == []
    assert [integer_value(extent) for extent in buffer.shape] == [1]


def test_the_meaning_stays():
    x = np.arange(96, dtype=np.float32).reshape(3, 32)
    y = np.zeros_like(x)
    run(planned(PRIVATE), {"x": x, "y": y, "m": 3})
    np.testing.assert_array_equal(y, 2 * x)
    total = np.zeros(96, dtype=np.float32)
    run(planned(CARRIED), {"x": x.ravel(), "y": total, "m": 96})
    np.testing.assert_array_equal(total, np.cumsum(x.ravel().astype(np.float64)))


def test_a_buffer_that_nothing_uses_disappears():
    module = planned(
        PRIVATE.replace(
            'scope="local")', 'scope="local")\n    idle = T.decl_buffer((m,), "float32")'
        )
    )
    names = [node.buffer.name for node in walk(module) if isinstance(node, Allocate)]
    assert names == ["tile"]


@pytest.mark.parametrize("side", ["if m > 1:", "if m <= 1:\n        X[0, 0] = 1.0\n    else:"])
def test_a_buffer_moves_into_the_side_of_a_choice_that_uses_it(side):
    before, _, nest = PRIVATE.partition("    for i in")
    inside = "\n".join(f"    {line}" for line in f"    for i in{nest}".splitlines())
    buffer, loops = allocation(planned(f"{before}    {side}\n{inside}\n"))
    assert loops == ["i", "k_0"]
    assert [integer_value(extent) for extent in buffer.shape] == [8]


def test_a_buffer_that_both_sides_of_a_choice_use_stays_before_it():
    text = (
        CARRIED.rstrip()
        + "\n    if m > 1:\n        total[0] = 1.0\n    else:\n        total[0] = 2.0\n"
    )
    _, loops = allocation(planned(text))
    assert loops == []


def test_what_a_body_allocates_is_no_larger_than_what_lives_there():
    (allocate,) = (node for node in walk(planned(ALLOCATED)) if isinstance(node, Allocate))
    assert [integer_value(extent) for extent in allocate.buffer.shape] == [32]


def test_a_row_is_as_long_as_the_loop_over_it():
    text = """
    for i in T.serial(m):
        row = T.alloc_buffer((n,), "float32", scope="local")
        for j in T.serial(P[i + 1] - P[i]):
            row[P[i] + j] = X[P[i] + j, 0]
        for j_1 in T.serial(P[i + 1] - P[i]):
            Y[i] = Y[i] + row[P[i] + j_1]
"""
    module = planned(ALLOCATED[: ALLOCATED.index("    for i in")] + text.lstrip("\n"))
    (allocate,) = (node for node in walk(module) if isinstance(node, Allocate))
    assert print_expr(allocate.buffer.shape[0]) == "T.max(P[i + 1] - P[i], 0)"
    p, x = np.array([0, 3, 3, 5]), np.arange(5 * 32, dtype=np.float32).reshape(5, 32)
    y = np.zeros(3, np.float32)
    run(module, {"p": p, "x": x, "y": y, "m": 3, "n": 5})
    np.testing.assert_array_equal(y, [96, 0, 224])
