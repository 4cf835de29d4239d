"""`hoist_searches`: equal searches are made once, outside of the loops that do not change them."""

from __future__ import annotations

import numpy as np
import pytest
from searches import program, searches

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Let, Search, While
from gossamer_ir.script import print_expr
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import hoist_searches, lower_to_flat, unroll_loops


def test_equal_searches_are_made_once_and_outside():
    body = """
for i in T.serial(c):
    for k in T.serial(c):
        Y[k] = Y[k] + T.search("lower", P, begin=0, end=n, value=i) * 2
        X[k] = X[k] + T.search("lower", P, begin=0, end=n, value=i)
"""
    hoisted = hoist_searches(program(body))
    (loop,) = hoisted.functions[0].body
    assert [type(stmt).__name__ for stmt in loop.body] == ["Let", "For"]
    assert len(searches(hoisted)) == 1


def test_a_search_that_reads_where_to_search_leaves_loops_that_do_not_change_it():
    body = """
for i in T.serial(c):
    for k in T.serial(n):
        for l in T.serial(k):
            Y[i] = Y[i] + X[i] * T.search("upper", P, begin=T.int64(P[i]), end=n, value=i)
"""
    module = program(body)
    hoisted = hoist_searches(module)
    (outer,) = hoisted.functions[0].body
    assert [type(stmt).__name__ for stmt in outer.body] == ["For"]
    (middle,) = outer.body
    assert [type(stmt).__name__ for stmt in middle.body] == ["Let", "For"]
    assert diagnostics(hoisted) == ()
    results = []
    for stage in (module, hoisted, lower_to_flat(module)):
        y = np.ones(3, np.int64)
        run(stage, {"x": np.arange(3), "y": y, "p": np.array([0, 0, 1, 7], "i4"), "n": 4, "c": 3})
        results.append(y.tolist())
    assert results[0] == results[1] == results[2] == [1, 1 + 6 * 3, 1 + 6 * 2 * 3]


def test_a_search_for_what_another_search_finds_stays_with_it():
    body = """
for i in T.serial(c):
    for k in T.serial(n):
        Y[i] = Y[i] + T.search(
            "upper", P, begin=T.int64(P[0]), end=n,
            value=T.search("lower", P, begin=0, end=n, value=k),
        )
"""
    module = program(body)
    flat = lower_to_flat(module)
    assert diagnostics(flat) == ()
    results = []
    for stage in (module, flat):
        y = np.ones(3, np.int64)
        run(stage, {"x": y, "y": y, "p": np.array([0, 0, 1, 7], "i4"), "n": 4, "c": 3})
        results.append(y.tolist())
    assert results[0] == results[1] == [1 + 2 + 3 + 3 + 3] * 3


def test_a_search_for_what_the_program_writes_stays_where_it_is():
    body = """
for i in T.serial(c):
    for k in T.serial(c):
        Y[k] = T.search("lower", P, begin=0, end=n, value=Y[k])
"""
    hoisted = hoist_searches(program(body))
    (outer,) = hoisted.functions[0].body
    (inner,) = outer.body
    assert isinstance(inner.body[0], Let)
    assert isinstance(inner.body[0].value, Search)


def test_copies_go_on_from_each_other():
    body = """
for i in T.parallel(c // 4):
    for u in T.unroll(4):
        Y[i * 4 + u] = T.search("upper", P, begin=1, end=n, value=i * 4 + u)
"""
    flat = lower_to_flat(program(body))
    whiles = [node for node in walk(flat) if isinstance(node, While)]
    assert len(whiles) == 8
    assert not searches(flat)


def test_copies_search_in_the_order_of_the_program():
    body = """
for i in T.serial(c // 16):
    if i > 0:
        for u in T.unroll(16):
            Y[i * 16 + u] = T.search("upper", P, begin=1, end=n, value=i * 16 + u)
"""
    hoisted = hoist_searches(unroll_loops(program(body)))
    assert [print_expr(node.value) for node in searches(hoisted)] == [
        "i * 16",
        *(f"i * 16 + {u}" for u in range(1, 16)),
    ]


IN_A_WRITTEN_WINDOW = 'T.search("lower", P, begin=X[0], end=n, value=3)'


def results_of(module):
    """The results of a program that searches P from X[0] on."""
    x, y = np.array([0, 2, 0]), np.zeros(3, np.int64)
    run(module, {"x": x, "y": y, "p": np.array([0, 3, 3, 7], "i4"), "n": 4, "c": 3})
    return x.tolist(), y.tolist()


def test_a_search_whose_window_was_written_before_is_made_once():
    body = f"""
X[0] = 2
Y[0] = {IN_A_WRITTEN_WINDOW}
for i in T.serial(c):
    if i > 0:
        Y[i] = Y[0] + {IN_A_WRITTEN_WINDOW}
"""
    module = program(body)
    hoisted = hoist_searches(module)
    assert len(searches(hoisted)) == 1
    assert results_of(hoisted) == results_of(module) == ([2, 2, 0], [2, 4, 4])


WRITTEN_BETWEEN = f"""
Y[0] = {IN_A_WRITTEN_WINDOW}
X[0] = 2
Y[1] = {IN_A_WRITTEN_WINDOW}
"""
WRITTEN_IN_THE_BRANCH_BEFORE = f"""
Y[0] = {IN_A_WRITTEN_WINDOW}
if n > 3:
    X[0] = 2
Y[1] = {IN_A_WRITTEN_WINDOW}
"""
WRITTEN_LATER_IN_THE_LOOP = f"""
Y[0] = {IN_A_WRITTEN_WINDOW}
for i in T.serial(2):
    Y[1] = {IN_A_WRITTEN_WINDOW}
    X[0] = 2
"""
WRITTEN_BY_OTHER_ITERATIONS = f"""
for i in T.parallel(1):
    Y[0] = {IN_A_WRITTEN_WINDOW}
    if c > 0:
        Y[1] = 1 + {IN_A_WRITTEN_WINDOW}
    X[1] = 0
"""


def test_a_search_is_made_again_after_its_window_was_written():
    for body in (WRITTEN_BETWEEN, WRITTEN_IN_THE_BRANCH_BEFORE, WRITTEN_LATER_IN_THE_LOOP):
        module = program(body)
        hoisted = hoist_searches(module)
        assert len(searches(hoisted)) == 2
        assert results_of(hoisted) == results_of(module)
        assert results_of(hoisted)[1] == [1, 2, 0]


def test_a_search_is_made_again_where_other_iterations_may_have_written_its_window():
    assert len(searches(hoist_searches(program(WRITTEN_BY_OTHER_ITERATIONS)))) == 2
    serial = program(WRITTEN_BY_OTHER_ITERATIONS.replace("parallel", "serial"))
    assert len(searches(hoist_searches(serial))) == 1


def test_the_condition_of_a_loop_does_not_use_a_search_made_before_the_loop():
    body = f"""
Y[0] = {IN_A_WRITTEN_WINDOW}
while {IN_A_WRITTEN_WINDOW} < 2:
    X[0] = X[0] + 1
"""
    with pytest.raises(UnsupportedError, match="condition of a while loop"):
        hoist_searches(program(body))
