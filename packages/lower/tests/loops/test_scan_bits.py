"""Loops over the bits of a word scan them, with the same results."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Call
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import scan_bits
from gossamer_testkit.examples import program

SCANNED = {
    "the bits of one word": """
for s in T.serial(n):
    Y[s] = T.float32(T.find_nth_bit(P[0], s))
""",
    "a loop that does not start at 0": """
for s in T.serial(2, n):
    Y[s] = T.float32(T.find_nth_bit(P[0], s - 2))
""",
    "the bits of each word": """
for i in T.serial(n):
    for s in T.serial(T.popcount(P[i])):
        Y[i] = Y[i] * 3.0 + T.float32(T.find_nth_bit(P[i], s))
""",
    "several words at once": """
for s in T.serial(n):
    Y[s] = T.float32(T.find_nth_bit(P[0], s) * 100 + T.find_nth_bit(P[n - 1], s))
""",
    "inside a choice and an inner loop": """
for s in T.serial(n):
    if s % 2 == 0:
        for k in T.serial(n):
            Y[k] = Y[k] + T.float32(T.find_nth_bit(P[1 % n], s))
""",
    "a word that is computed": """
for s in T.serial(n):
    Y[s] = T.float32(T.find_nth_bit(P[0] * 3 + n, s))
""",
}
KEPT = {
    "another bit": """
for s in T.serial(n):
    Y[s] = T.float32(T.find_nth_bit(P[0], s + 1))
""",
    "another word in each iteration": """
for s in T.serial(n):
    Y[s] = T.float32(T.find_nth_bit(P[s], s))
""",
    "a word that the loop changes": """
for s in T.serial(n):
    P[0] = T.find_nth_bit(P[0], s)
""",
    "iterations on several threads": """
for s in T.parallel(n):
    Y[s] = T.float32(T.find_nth_bit(P[0], s))
""",
    "a word that may not exist": """
for s in T.serial(n):
    if n > 5:
        Y[s] = T.float32(T.find_nth_bit(P[5], s))
""",
}


def calls(module):
    return {node.function for node in walk(module) if isinstance(node, Call)}


def results(module, size):
    rng = np.random.default_rng(size)
    words = rng.integers(-(2**63), 2**63, size) & rng.integers(-(2**63), 2**63, size)
    y = np.full(size, -5, np.float32)
    run(module, {"x": np.zeros(size, np.float32), "y": y, "p": words, "n": size})
    return y


@pytest.mark.parametrize("body", SCANNED.values(), ids=SCANNED)
@pytest.mark.parametrize("size", [1, 3, 8, 70])
def test_bits_are_scanned_with_the_same_results(body, size):
    module = program(body)
    scanned = scan_bits(module)
    assert list(diagnostics(scanned)) == []
    assert "ctz" in calls(scanned)
    assert "find_nth_bit" not in calls(scanned)
    np.testing.assert_array_equal(results(scanned, size), results(module, size))


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_other_calls_are_left_alone(body):
    module = program(body)
    assert scan_bits(module) == module
