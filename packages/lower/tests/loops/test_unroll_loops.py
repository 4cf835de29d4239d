"""`unroll_loops`: copies of the body, and the limit of their size."""

from __future__ import annotations

import numpy as np
import pytest
from vector_programs import HEADER, SCRATCH

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Compare, For, Let, Store, Var
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


def test_copies_share_a_mask_that_does_not_depend_on_the_loop():
    text = """
for u in T.unroll(3):
    found: T.boolx4 = P[T.ramp(0, 1, 4)] != T.broadcast(n, 4)
    Y[T.ramp(4 * u, 1, 4)] = T.Select(found, X[T.ramp(0, 1, 4)], X[T.ramp(4, 1, 4)])
"""
    let, *stores = unroll_loops(program(text)).functions[0].body
    assert isinstance(let, Let)
    masks = {node.name for store in stores for node in walk(store.value) if isinstance(node, Var)}
    assert let.var.name in masks
    assert [type(stmt) for stmt in stores if not isinstance(stmt, Let)] == [Store] * 3
    assert sum(isinstance(node, Compare) for node in walk(*(let, *stores))) == 1


def test_a_let_that_reads_what_the_copies_write_stays_in_each():
    text = """
for u in T.unroll(2):
    found: T.float32 = X[0]
    X[u] = found * 2.0
"""
    body = unroll_loops(program(text)).functions[0].body
    assert [type(stmt) for stmt in body] == [Let, Store, Let, Store]
