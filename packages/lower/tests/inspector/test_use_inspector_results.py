"""The kernel that reads what an inspector found: text, parameters and facts. The two kernels together are
tested in `test_inspector.py`."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import InRange, Search
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import extract_inspector, use_inspector_results
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text

BODY = """
for i in T.serial(n):
    Y[i] = X[T.search("upper", P, begin=1, end=n, value=i) - 1]
"""
CASES = {
    "a search with a constant": (BODY, "for i in T.serial(n):\n    Y[i] = X[P_found_data[i]]"),
    "a search that all iterations share": (
        """
for i in T.serial(n):
    Y[i] = X[T.search("lower", P, begin=1, end=n, value=4) - 1]
""",
        "for i in T.serial(n):\n    Y[i] = X[P_found_data[0]]",
    ),
    "a search of values stays": (
        """
for i in T.serial(n):
    Y[i] = X[T.search("lower", P, begin=1, end=n, value=i) - 1]
    Y[i] = X[T.search("lower", P, begin=1, end=n, value=T.int64(X[i])) - 1]
""",
        """\
for i in T.serial(n):
    Y[i] = X[P_found_data[i]]
    Y[i] = X[T.search("lower", P, begin=1, end=n, value=T.int64(X[i])) - 1]""",
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_searches_of_index_arrays_become_loads(before, after):
    assert body_text(verify(use_inspector_results(program(before)))) == after


def test_the_results_are_parameters_after_all_others():
    before = program(BODY)
    (function,) = use_inspector_results(before).functions
    assert function.name == before.functions[0].name
    assert [param.name for param in function.params] == [
        *(param.name for param in before.functions[0].params),
        "P_found",
    ]


def test_the_range_of_the_results_is_a_fact():
    (function,) = use_inspector_results(program(BODY)).functions
    (fact,) = (f for f in function.facts if isinstance(f, InRange) and f.buffer == "P_found_data")
    assert (fact.low.text, fact.high.name) == ("0", "n")


@pytest.mark.parametrize("size", [1, 2, 9])
def test_inspector_and_executor_compute_what_the_whole_program_does(size):
    module, random = program(BODY), np.random.default_rng(size)
    x, p = random.integers(-9, 9, size).astype("float32"), np.sort(random.integers(0, 9, size))
    expected, actual = np.zeros(size, "float32"), np.zeros(size, "float32")
    run(module, {"x": x, "y": expected, "p": p, "n": size})
    out = np.zeros(size, "int64")
    run(extract_inspector(module), {"p": p, "n": size, "P_found": out})
    rest = use_inspector_results(module)
    run(rest, {"x": x, "y": actual, "p": p * 0, "n": size, "P_found": out})
    np.testing.assert_array_equal(actual, expected)
    assert not any(isinstance(node, Search) for node in walk(rest))
