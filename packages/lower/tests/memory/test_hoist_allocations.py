"""`hoist_allocations`: buffers of the iterations of a loop are allocated once, before the loop."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import hoist_allocations, outline_parallel

HOISTED = """
@T.prim_func
def f(p: T.handle, q: T.handle, y: T.handle, n: T.int64) -> None:
    P = T.match_buffer(p, (n, 2), "int64")
    Q = T.match_buffer(q, (n,), "int64")
    Y = T.match_buffer(y, (n,), "int64")
    for i in T.serial(n):
        {inner}
"""
STAYING = {
    "the size is written": "Q[i] = i\n        W = T.alloc_buffer((Q[i],), 'int64')",
    "the size is a variable of the loop": (
        "z: T.int64 = P[i, 0]\n        W = T.alloc_buffer((z,), 'int64')"
    ),
    "the size is constant": "W = T.alloc_buffer((3,), 'int64')",
    "a parallel loop is given it": (
        "W = T.alloc_buffer((P[i, 0],), 'int64')\n"
        "        for k in T.parallel(P[i, 0]):\n            W[k] = k"
    ),
}


def hoisted(inner):
    text = HOISTED.format(inner=f"{inner}\n        W[0] = i\n        Y[i] = W[0]")
    module = outline_parallel(parse_module(text.replace("'", '"')))
    return module, hoist_allocations(module)


@pytest.mark.parametrize("name", STAYING)
def test_what_cannot_leave_a_loop_stays_where_it_is(name):
    before, after = hoisted(STAYING[name])
    assert after == before


LEAVING = {
    "a size for each iteration": "W = T.alloc_buffer((P[i, 0],), 'int64')",
    "a size that is a product": "W = T.alloc_buffer((P[i, 0] * P[i, 1],), 'int64')",
    "a size that is the same for all": "W = T.alloc_buffer((n,), 'int64')",
}


@pytest.mark.parametrize("name", LEAVING)
def test_what_can_leave_a_loop_is_allocated_before_it(name):
    _, after = hoisted(LEAVING[name])
    *before, loop = after.functions[0].body
    assert [node.buffer.name for node in before if isinstance(node, Allocate)][-1] == "W"
    assert not [node for node in walk(loop) if isinstance(node, Allocate)]
    sizes, y = np.int64([[2, 1], [5, 2], [1, 7]]), np.zeros(3, dtype=np.int64)
    run(after, {"p": sizes, "q": sizes[:, 0].copy(), "y": y, "n": 3})
    np.testing.assert_array_equal(y, [0, 1, 2])


def test_the_largest_size_is_that_of_all_loops_around():
    inner = "for k in T.serial(i):\n            W = T.alloc_buffer((P[k, 0],), 'int64')"
    text = HOISTED.format(
        inner=f"{inner}\n            W[P[k, 0] - 1] = k\n            Y[i] = W[P[k, 0] - 1]"
    )
    after = hoist_allocations(outline_parallel(parse_module(text.replace("'", '"'))))
    *_, loop = after.functions[0].body
    assert not [node for node in walk(loop) if isinstance(node, Allocate)]
    sizes, y = np.int64([[2, 0], [5, 0], [1, 0], [3, 0]]), np.zeros(4, dtype=np.int64)
    run(after, {"p": sizes, "q": sizes[:, 0].copy(), "y": y, "n": 4})
    np.testing.assert_array_equal(y, [0, 0, 1, 2])
