"""Searches become loops: text after the pass, and the results of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from searches import program, searches

from gossamer_ir.interpret import run
from gossamer_ir.nodes import While
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import expand_search
from gossamer_testkit.show import body_text

ONE = """
for i in T.serial(c):
    at = T.search("KIND", P, begin=0, end=n, value=X[i])
    Y[i] = at
"""
TWO = """
for i in T.serial(c):
    low = T.search("lower", P, begin=0, end=n, value=X[i])
    high = T.search("upper", P, begin=0, end=n, value=X[i])
    Y[i] = high - low
"""
UNDER = """
for i in T.serial(c):
    at = T.if_then_else(n > 2, T.search("upper", P, begin=0, end=n - 2, value=X[i]), -7)
    Y[i] = at
"""
ARRAYS = {
    "empty": [],
    "one element": [3],
    "equal elements": [2, 2, 2, 2],
    "gaps": [-4, 0, 0, 1, 5, 5, 9, 30],
}
VALUES = np.array([-9, -4, 0, 2, 3, 4, 5, 30, 31, 5, 0, -9])
"""Ascending, where a cursor only moves forward, and then descending, where it must start again."""


def exact(array, values):
    return np.array([array.index(value) if value in array else -1 for value in values], int)


EXPECTED = {
    "lower": lambda array, values: np.searchsorted(array, values, "left"),
    "upper": lambda array, values: np.searchsorted(array, values, "right"),
    "exact": exact,
}


def result_of(body, array, values=VALUES):
    module = verify(expand_search(program(body)))
    assert searches(module) == []
    y = np.full(values.size, 99)
    arrays = {"p": np.array(array, "int32"), "x": values, "y": y}
    run(module, arrays | {"n": len(array), "c": values.size})
    return y


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("kind", EXPECTED)
def test_a_search_finds_what_numpy_finds(kind, array):
    positions = result_of(ONE.replace("KIND", kind), array)
    np.testing.assert_array_equal(positions, EXPECTED[kind](array, VALUES))


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_two_searches_of_one_window_are_apart(array):
    counts = [array.count(value) for value in VALUES]
    np.testing.assert_array_equal(result_of(TWO, array), counts)


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_a_search_under_a_condition_runs_only_there(array):
    expected = np.searchsorted(array[:-2], VALUES, "right") if len(array) > 2 else -7
    np.testing.assert_array_equal(result_of(UNDER, array), np.broadcast_to(expected, VALUES.shape))


def test_a_search_alone_halves_its_window():
    module = expand_search(program('at = T.search("lower", P, begin=0, end=n, value=5)\nY[0] = at'))
    assert (
        body_text(module)
        == """\
at_low = T.alloc_buffer((1,), "int64", scope="local")
at_low[0] = 0
at_size = T.alloc_buffer((1,), "int64", scope="local")
at_size[0] = n
while at_size[0] > 0:
    at_middle: T.int64 = at_low[0] + (at_size[0] - (at_size[0] >> 1))
    at_low[0] = T.Select(T.int64(P[at_middle - 1]) < 5, at_middle, at_low[0])
    at_size[0] = at_size[0] >> 1
at: T.int64 = at_low[0]
Y[0] = at"""
    )


MANY = ONE.replace("KIND", "lower").replace("end=n", "end=8").replace("X[i]", "i * 7 % 40")


def test_searches_of_one_window_in_a_serial_loop_continue_from_the_last_result():
    """A cursor is allocated before the loop: its step past the end of the window cannot overflow."""
    text = body_text(expand_search(program(MANY)))
    assert text.index("P_cursor = T.alloc_buffer") < text.index("for i in")
    array, values = ARRAYS["gaps"], np.arange(VALUES.size) * 7 % 40
    np.testing.assert_array_equal(result_of(MANY, array), np.searchsorted(array, values))


def test_threads_do_not_share_a_cursor():
    parallel = MANY.replace("T.serial", "T.parallel")
    assert "P_cursor" not in body_text(expand_search(program(parallel)))


def test_a_function_without_searches_stays_the_same():
    module = program("for i in T.serial(c):\n    Y[i] = X[i]")
    assert expand_search(module).functions[0] is module.functions[0]
    assert [node for node in walk(expand_search(module)) if isinstance(node, While)] == []
