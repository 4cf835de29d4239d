"""`unroll_loops`: copies of the body, and the limit of their size."""

from __future__ import annotations

import numpy as np
import pytest
from vector_programs import HEADER, SCRATCH

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import For
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_to_flat, unroll_loops
from gossamer_testkit.examples import program


def test_unrolled_loops_are_copied():
    text = HEADER + "    for u in T.unroll(3):\n        if u < n:\n            Y[u] = X[u] + X[u]\n"
    module = lower_to_flat(parse_module(text))
    assert not any(isinstance(node, For) for node in walk(module))
    y = np.zeros(2, dtype=np.float32)
    run(
        module,
        {
            "x": np.array([1, 2], np.float32),
            "y": y,
            "p": np.zeros(2, np.int32),
            "s": SCRATCH,
            "n": 2,
        },
    )
    np.testing.assert_array_equal(y, [2, 4])


def test_a_search_counts_for_what_it_becomes():
    body = "for u in T.unroll({}):\n    Y[u] = X[T.search('lower', P, begin=0, end=n, value=u)]"
    assert len(unroll_loops(program(body.format(100))).functions[0].body) == 100
    with pytest.raises(UnsupportedError) as caught:
        unroll_loops(program(body.format(200)))
    assert caught.value.code == "lower.unroll_loops.size"


def test_a_symbolic_extent_cannot_be_unrolled():
    text = HEADER + "    for u in T.unroll(n):\n        Y[u] = X[u]\n"
    with pytest.raises(UnsupportedError) as caught:
        lower_to_flat(parse_module(text))
    assert caught.value.code == "lower.unroll_loops.extent"
