"""Parts of conditions that all lanes share move out of vectorized loops: text before and after, and the same
results."""

from __future__ import annotations

import pytest
from same_results import same_results

from gossamer_lower import lower_to_flat, unswitch_uniform_conditions
from gossamer_testkit.examples import program
from gossamer_testkit.show import body_text

MOVED = {
    "a condition that the lane does not affect": (
        """
for i in T.serial(n // 4):
    for l in T.vectorized(4):
        if i < n - 3:
            Y[i * 4 + l] = X[i * 4 + l]
""",
        """
for i in T.serial(n // 4):
    if i < n - 3:
        for l in T.vectorized(4):
            Y[i * 4 + l] = X[i * 4 + l]
""",
    ),
    "a part of a condition": (
        """
for i in T.serial(n):
    for l in T.vectorized(4):
        if i < n - 3 and l < n:
            Y[l] = X[i]
""",
        """
for i in T.serial(n):
    if i < n - 3:
        for l in T.vectorized(4):
            if l < n:
                Y[l] = X[i]
""",
    ),
    "out of the loop that contains nothing else": (
        """
for i in T.serial(n // 4):
    for l in T.vectorized(4):
        if n > 5:
            Y[i * 4 + l] = X[i * 4 + l]
""",
        """
if n > 5:
    for i in T.serial(n // 4):
        for l in T.vectorized(4):
            Y[i * 4 + l] = X[i * 4 + l]
""",
    ),
    "a bound that is zero unless a condition holds": (
        """
for i in T.serial(n // 4):
    for k in T.serial(T.if_then_else(i > 1, n // 4, 0)):
        for l in T.vectorized(4):
            Y[k * 4 + l] = X[i * 4 + l]
""",
        """
for i in T.serial(n // 4):
    if i > 1:
        for k in T.serial(n // 4):
            for l in T.vectorized(4):
                Y[k * 4 + l] = X[i * 4 + l]
""",
    ),
    "a bound that is zero unless a condition holds, which is tested inside again": (
        """
for i in T.serial(n // 4):
    for k in T.serial(T.if_then_else(i > 1, n // 4, 0)):
        if i > 1 and k < n - 5:
            Y[k] = X[i]
        if i > 1:
            for l in T.vectorized(4):
                Y[k * 4 + l] = X[i * 4 + l]
""",
        """
for i in T.serial(n // 4):
    if i > 1:
        for k in T.serial(n // 4):
            if k < n - 5:
                Y[k] = X[i]
            for l in T.vectorized(4):
                Y[k * 4 + l] = X[i * 4 + l]
""",
    ),
    "a bound that is zero unless an element is positive, which may change before another test": (
        """
for i in T.serial(n // 4):
    for k in T.serial(T.if_then_else(P[i] > 0, n // 4, 0)):
        if P[i] > 0:
            P[k] = 0
            Y[k] = X[i]
""",
        """
for i in T.serial(n // 4):
    if P[i] > 0:
        for k in T.serial(n // 4):
            if P[i] > 0:
                P[k] = 0
                Y[k] = X[i]
""",
    ),
}


@pytest.mark.parametrize(("before", "after"), MOVED.values(), ids=MOVED)
def test_uniform_conditions_move_out_of_loops(before, after):
    module = program(before)
    changed = unswitch_uniform_conditions(module)
    assert body_text(changed) == after.strip("\n")
    same_results(module, changed)
    same_results(module, lower_to_flat(module))


STAYS = {
    "a condition on the lane": """
for i in T.serial(n // 4):
    for l in T.vectorized(4):
        if i * 4 + l < n - 5:
            Y[i * 4 + l] = X[i * 4 + l]
""",
    "a loop that is not vectorized": """
for i in T.serial(n // 4):
    for l in T.serial(4):
        if n > 5:
            Y[i * 4 + l] = X[i * 4 + l]
""",
    "a condition on what the loop writes": """
for i in T.serial(n // 4):
    for l in T.vectorized(4):
        if Y[i] > 0.0:
            Y[i * 4 + l] = X[i * 4 + l]
""",
}


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_other_conditions_stay(body):
    module = program(body)
    changed = unswitch_uniform_conditions(module)
    assert body_text(changed) == body.strip("\n")
    same_results(module, changed)


def test_a_read_does_not_move_out_of_a_loop_that_may_have_no_iteration():
    """The element need not exist there."""
    module = program("""
for i in T.serial(n // 4):
    for l in T.vectorized(4):
        if P[0] > 0:
            Y[i * 4 + l] = X[i * 4 + l]
""")
    changed = unswitch_uniform_conditions(module)
    assert body_text(changed).splitlines()[:2] == [
        "for i in T.serial(n // 4):",
        "    if P[0] > 0:",
    ]
    same_results(module, changed)
