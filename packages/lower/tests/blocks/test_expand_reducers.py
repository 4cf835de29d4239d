"""Combinations by declared reducers become lets and stores: text before and after, and the same results."""

from __future__ import annotations

import numpy as np
import pytest
from same_results import nodes, same_results

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Combine
from gossamer_ir.verify import verify
from gossamer_lower import expand_reducers, lower_to_flat
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text

ARGMAX = """
best = T.comm_reducer(
    lambda v, i, w, j: (T.Select(w > v, w, v), T.Select(w > v, j, i)),
    (T.float32("-inf"), T.int64(-1)))
for k in T.serial(n):
    Y[0], P[0] = best(Y[0], P[0], X[k], k)
"""
LARGEST = """
largest = T.comm_reducer(lambda a, b: (T.max(a, b),), (T.float32("-inf"),))
"""
CASES = {
    "one result": (
        LARGEST + "for i in T.serial(n):\n    Y[0] = largest(Y[0], X[i] * 2.0)",
        """
for i in T.serial(n):
    a: T.float32 = Y[0]
    b: T.float32 = X[i] * 2.0
    Y[0] = T.max(a, b)
""",
    ),
    "two results, whose elements are read before the first is stored": (
        ARGMAX,
        """
for k in T.serial(n):
    v: T.float32 = Y[0]
    i: T.int64 = P[0]
    w: T.float32 = X[k]
    j: T.int64 = k
    Y[0] = T.Select(w > v, w, v)
    P[0] = T.Select(w > v, j, i)
""",
    ),
    "names that the function has": (
        LARGEST + "for a in T.serial(n):\n    b = X[a] + 1.0\n    Y[a] = largest(Y[a], b)",
        """
for a_1 in T.serial(n):
    b_1: T.float32 = X[a_1] + 1.0
    a: T.float32 = Y[a_1]
    b: T.float32 = b_1
    Y[a_1] = T.max(a, b)
""",
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_a_combination_becomes_lets_and_stores(before, after):
    changed = verify(expand_reducers(program(before)))
    assert body_text(changed) == after.strip("\n")
    assert changed.functions[0].reducers == ()
    assert nodes(changed, Combine) == []


@pytest.mark.parametrize("body", [CASES["names that the function has"][0]])
def test_the_results_stay(body):
    module = program(body)
    same_results(module, expand_reducers(module))


@pytest.mark.parametrize("values", [[3.0], [1, 5, 5, 2], [-4, -9, -4]])
def test_an_argmax_is_that_of_numpy(values):
    for module in (expand_reducers(program(ARGMAX)), lower_to_flat(program(ARGMAX))):
        x, y = np.array(values, "float32"), np.full(len(values), -np.inf, "float32")
        p = np.full(len(values), -1)
        run(module, {"x": x, "y": y, "p": p, "n": len(values)})
        assert (y[0], p[0]) == (x.max(), x.argmax())


def test_a_function_without_reducers_stays_the_same():
    module = program("for i in T.serial(n):\n    Y[i] = X[i]")
    assert expand_reducers(module).functions[0] is module.functions[0]
