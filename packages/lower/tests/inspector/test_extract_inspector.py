"""The kernel that searches: text, parameters, and what it writes. The two kernels together are tested in
`test_inspector.py`."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Search
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import extract_inspector
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text

CASES = {
    "a loop": (
        """
for i in T.serial(n):
    Y[i] = X[T.search("upper", P, begin=1, end=n, value=i) - 1]
""",
        """
for i in T.serial(n):
    with T.block("P_found"):
        vi = T.axis.spatial(n, i)
        P_found_data[vi] = T.search("upper", P, begin=1, end=n, value=vi) - 1
""",
    ),
    "a loop on which it does not depend": (
        """
for i in T.serial(n):
    for k in T.serial(4):
        Y[i] = Y[i] + X[T.search("lower", P, begin=0, end=n, value=i)]
""",
        """
for i in T.serial(n):
    with T.block("P_found"):
        vi = T.axis.spatial(n, i)
        P_found_data[vi] = T.search("lower", P, begin=0, end=n, value=vi)
""",
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_the_kernel_consists_of_the_searches(before, after):
    kernel = verify(extract_inspector(program(before)))
    assert body_text(kernel) == after.strip("\n")
    (function,) = kernel.functions
    assert function.name == kernel.entry
    assert function.name.endswith("_preprocess")
    assert [param.name for param in function.params] == ["p", "n", "P_found"]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("size", [0, 1, 2, 9])
def test_the_inspector_stores_the_positions_that_numpy_finds(size, dtype):
    kernel = extract_inspector(program(CASES["a loop on which it does not depend"][0]), dtype=dtype)
    p = np.sort(np.random.default_rng(size).integers(0, 9, size))
    out = np.full(size, 99, dtype)
    run(kernel, {"p": p, "n": size, "P_found": out})
    np.testing.assert_array_equal(out, np.searchsorted(p, np.arange(size)))


def test_equal_searches_are_made_once():
    search = 'T.search("lower", P, begin=0, end=n, value=i)'
    kernel = extract_inspector(
        program(f"for i in T.serial(n):\n    Y[{search}] = 1.0 + X[{search}]")
    )
    assert len([node for node in walk(kernel) if isinstance(node, Search)]) == 1


def test_only_what_the_searches_need_is_a_parameter():
    kernel = extract_inspector(program('Y[0] = X[T.search("lower", P, begin=0, end=n, value=7)]'))
    assert [param.name for param in kernel.functions[0].params] == ["p", "n", "P_found"]
