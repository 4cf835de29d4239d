"""Bounds checks that are hoisted out of loops stop the kernel exactly where the original ones do."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import For, Guard
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import hoist_bounds_checks, insert_bounds_checks

HEADER = """
@T.prim_func
def f(x: T.handle, y: T.handle, z: T.handle, p: T.handle, m: T.int64, n: T.int64,
      c: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "int64")
    Y = T.match_buffer(y, (m,), "int64")
    Z = T.match_buffer(z, (c,), "int64")
    P = T.match_buffer(p, (m + 1,), "int32")
    T.assume(monotone(P))
    T.assume(in_range(P, 0, 9))
"""
LEAVING = {
    "one by one": """
for i in T.serial(m):
    for j in T.serial(c):
        Y[i] = X[T.int64(P[i]) + j]
""",
    "from a start": """
for i in T.serial(m):
    for j in T.serial(2, c):
        Y[i] = X[T.int64(P[i]) + j - 2]
""",
    "in steps of a constant": """
for i in T.serial(m):
    for j in T.serial(c):
        Y[i] = X[T.int64(P[i]) + 2 * j]
""",
    "in steps of a difference of offsets": """
for i in T.serial(m):
    for j in T.serial(c):
        Y[i] = X[1 + j * (T.int64(P[i + 1]) - T.int64(P[i]))]
""",
    "in no steps": """
for i in T.serial(m):
    for j in T.serial(c):
        Y[i] = X[T.int64(P[i])]
""",
    "before a parallel loop": """
for j in T.parallel(m):
    Y[j] = X[j + 1]
""",
}
STAYING = {
    "indirect": """
for i in T.serial(m):
    Y[i] = X[T.int64(P[i]) + T.int64(P[0])]
""",
    "backwards": """
for i in T.serial(m):
    Y[i] = X[n - i]
""",
    "after a condition": """
for i in T.serial(m):
    if Y[i] > 0:
        Y[i] = X[i]
""",
    "under the condition of a side": """
for i in T.serial(m):
    Y[i] = T.if_then_else(Y[i] > 0, X[i], Y[i])
""",
    "by a variable of the body": """
for i in T.serial(m):
    at: T.int64 = T.int64(P[i]) + i
    Y[i] = X[at]
""",
    "by what is written": """
for i in T.serial(m):
    for j in T.serial(c):
        Y[i] = X[Y[i] + j]
""",
    "in steps of unknown sign": """
for i in T.serial(m):
    Y[i] = X[i * n - i * 3]
""",
    "below what changes in the loop": """
for i in T.serial(m):
    for j in T.serial(m):
        T.guard(i >= 0 and i < T.int64(P[j]), X)
        Y[j] = 1
""",
    "after one that stays": """
for i in T.serial(m):
    Y[i] = X[n - i]
    Y[i] = X[i + 1]
""",
}


def guarded(body):
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return insert_bounds_checks(parse_module(HEADER + lines + "\n"))


def guards_inside(module):
    """The guards in innermost loops."""
    loops = [node for node in walk(module) if isinstance(node, For)]
    inner = [loop for loop in loops if sum(isinstance(node, For) for node in walk(loop)) == 1]
    return sum(isinstance(node, Guard) for loop in inner for node in walk(loop))


def outcome(module, arguments):
    copies = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    try:
        run(module, copies)
    except GuardFailed as error:
        return str(error)
    return copies["y"].tolist()


@pytest.mark.parametrize("name", LEAVING)
def test_a_guard_outside_stops_where_those_inside_would(name):
    before = guarded(LEAVING[name])
    after = verify(hoist_bounds_checks(before))
    assert guards_inside(before) > 0
    assert guards_inside(after) == 0
    seen = set()
    for n, count, offsets in product(range(9), range(5), ([0, 2, 3], [1, 1, 8], [4, 5, 5])):
        arguments = {
            "x": np.arange(n) + 10, "y": np.zeros(2, np.int64), "z": np.zeros(count, np.int64),
            "p": np.array(offsets, np.int32), "m": 2, "n": n, "c": count,
        }  # fmt: skip
        expected = outcome(before, arguments)
        assert outcome(after, arguments) == expected
        seen.add(type(expected))
    assert seen == {str, list}


@pytest.mark.parametrize("name", STAYING)
def test_other_guards_stay(name):
    before = guarded(STAYING[name])
    assert guards_inside(before) > 0
    assert hoist_bounds_checks(before) == before
