"""Loops that choose between two bodies by a bound are split there, with the same results."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Binary, For, If
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import peel_remainder, split_index_set
from gossamer_testkit.examples import program

SIZES = [0, 1, 3, 4, 5, 8, 11, 40]
CHOICE = """
for i in T.serial({start}, {end}):
    if {condition}:
        Y[i] = X[i] + 1.0
    else:
        Y[i] = Y[i] * 3.0 + X[i]
"""


def choice(condition, *, start="0", end="n"):
    return CHOICE.format(condition=condition, start=start, end=end)


PARTED = {
    "less": choice("i * 4 + 3 < n"),
    "less or equal": choice("i * 3 <= n"),
    "greater": choice("n > i + 2"),
    "greater or equal": choice("n - 7 >= i * 2"),
    "a bound before the loop": choice("i < n - 100"),
    "a bound after the loop": choice("i < n + 5"),
    "a start of its own": choice("i * 2 < n", start="n // 4"),
    "a start after the bound": choice("i < 2", start="n // 2"),
    "an empty range": choice("i < 2", start="n", end="n // 2"),
    "both sides depend on it": choice("i * 2 < n - i"),
    "groups": """
for i in T.serial((n + 3) // 4):
    if i * 4 + 3 < n:
        Y[i * 4 + 3] = X[i]
    else:
        Y[i * 4] = X[i] + 2.0
""",
    "a bound that the extent reads": """
if n > 2:
    for i in T.serial(T.min(T.max(T.int64(T.int32(P[1])), 0), n)):
        if i * 2 < T.int64(T.int32(P[1])):
            Y[i] = X[i]
        else:
            Y[i] = 2.0
""",
    "loops inside and outside": """
for j in T.serial(n):
    for i in T.serial(n):
        if i < j:
            Y[i] = Y[i] + X[j]
        else:
            for k in T.serial(2):
                Y[i] = Y[i] - X[k * j]
""",
}
KEPT = {
    "one body": "for i in T.serial(n):\n    if i < 3:\n        Y[i] = X[i]",
    "a body beside it": choice("i < 3") + "    X[i] = 0.0",
    "iterations in parallel": choice("i < 3").replace("serial", "parallel"),
    "the upper iterations": choice("3 < i"),
    "a condition without the variable": choice("3 < n"),
    "an equation": choice("i == 3"),
    "two bounds": choice("i < 3 and i < n - 1"),
    "a bound on something else": choice("i // 2 < 3"),
    "what changes with the loop otherwise": choice("i < P[i]"),
    "an extent that the loop changes": """
for i in T.serial(T.int64(T.int32(P[1]))):
    if i < n - 2:
        P[1] = 4
    else:
        P[1] = 1
""",
    "a bound that may wrap": """
if n > 2:
    for i in T.serial(T.min(T.max(P[1], 0), n)):
        if i * 2 < P[1]:
            Y[i] = X[i]
        else:
            Y[i] = 2.0
""",
    "a load that only an iteration executes": choice("i < P[0]"),
    "a load of the extent under a condition": choice(
        "i < P[3]", end="T.if_then_else(n > 3, T.min(T.max(P[3], 0), n), 0)"
    ),
    "a quotient that only an iteration has": choice("i < 40 // n"),
    "a bound that the loop changes": """
if n > 2:
    for i in T.serial(T.min(T.max(P[1], 0), n)):
        if i * 2 < P[1]:
            P[1] = P[1] - 1
        else:
            Y[i] = 2.0
""",
}


def same_results(before, after):
    assert diagnostics(after) == ()
    for n in SIZES:
        results = []
        for module in (before, after):
            generator = np.random.default_rng(n)
            x, y = generator.integers(-9, 9, (2, n)).astype(np.float32)
            p = generator.integers(-2, n + 1, n)
            run(module, {"x": x, "y": y, "p": p, "n": n})
            results.append((x, y, p))
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)


def choices(module):
    return [node for node in walk(module) if isinstance(node, If) and node.else_body]


@pytest.mark.parametrize("name", PARTED)
def test_a_choice_by_a_bound_is_two_loops(name):
    before = program(PARTED[name])
    after = split_index_set(before)
    assert choices(after) == []
    same_results(before, after)


@pytest.mark.parametrize("name", KEPT)
def test_other_choices_stay(name):
    before = program(KEPT[name])
    assert split_index_set(before) == before


def test_bounds_that_are_proved_need_no_minimum_or_maximum():
    after = split_index_set(
        program("if n > 0:\n    " + PARTED["groups"].strip().replace("\n", "\n    "))
    )
    assert not any(isinstance(node, Binary) and node.op in ("min", "max") for node in walk(after))
    assert len([node for node in walk(after) if isinstance(node, For)]) == 1


def test_the_rest_of_a_group_is_behind_the_loop():
    before = program("""
for i in T.serial((n + 3) // 4):
    for u in T.unroll(4):
        if i * 4 + u < n:
            for j in T.serial(P[i * 4 + u] % 3):
                Y[i * 4 + u] = Y[i * 4 + u] + X[j % n]
""")
    after = split_index_set(peel_remainder(before))
    assert choices(after) == []
    same_results(before, after)
