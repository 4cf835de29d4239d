"""`hoist_invariant_loads`: invariant vectors are loaded before the loop if the loads are always in bounds."""

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Let, Load
from gossamer_ir.traversal.walk import stmts
from gossamer_lower import hoist_invariant_loads
from gossamer_lower.vector.hoist_invariant_loads import DEFAULT_KEPT_VECTORS
from gossamer_testkit.examples import program

RUN = "X[T.ramp({0}, 1, 4)]"
INTO = "Y[T.ramp({0}, 1, 4)] = "

HOISTED = {
    "under a condition": f"""
if n > 7:
    for i in T.serial(n - 4):
        if P[i] > 0:
            {INTO.format("i")}{RUN.format(4)}
""",
    "from the outermost loop that does not change it": f"""
if n > 7:
    for i in T.serial(2):
        for j in T.serial(2):
            {INTO.format("i * 2 + j")}{RUN.format(4)}
""",
    "from the inner loop where the outer one changes it": f"""
for i in T.serial(n // 4):
    for j in T.serial(n // 4):
        if P[j] > 0:
            {INTO.format("j * 4")}{RUN.format("i * 4")}
""",
    "under a mask that holds only for existing elements": """
if n > 7:
    for i in T.serial(n - 3):
        Y[T.ramp(i, 1, 4)] = T.load(X, T.ramp(n - 2, 1, 4),
            predicate=T.ramp(n - 2, 1, 4) < T.broadcast(n, 4), passthrough=T.broadcast(0.0, 4))
""",
}

LEFT = {
    "a value that the loop changes": f"for i in T.serial(n - 3): {INTO.format('i')}{RUN.format('i')}",
    "a buffer that is written": """
if n > 7:
    for i in T.serial(n - 4): Y[T.ramp(i, 1, 4)] = Y[T.ramp(4, 1, 4)]
""",
    "an element that may not exist": f"""
for i in T.serial(n - 3):
    if n > 7:
        {INTO.format("i")}{RUN.format(4)}
""",
    "gathers": "for i in T.serial(n - 3): Y[T.ramp(i, 1, 4)] = X[T.ramp(0, 0, 4)]",
    "scalars": "for i in T.serial(n): Y[i] = X[0]",
    "an element at an index from another array": f"""
for i in T.serial(n - 3): {INTO.format("i")}{RUN.format("P[0]")}
""",
    "loops whose iterations may run elsewhere": f"""
if n > 7:
    for i in T.parallel(n // 4): {INTO.format("i * 4")}{RUN.format(4)}
""",
    "more than there are registers for": "\n".join(
        [
            f"if n > {DEFAULT_KEPT_VECTORS + 4}:",
            "    for i in T.serial(n - 3):",
            *(
                f"        {INTO.format('i')}{RUN.format(at)}"
                for at in range(DEFAULT_KEPT_VECTORS + 1)
            ),
        ]
    ),
}


def results(module, size):
    x = np.arange(1, size + 1, dtype=np.float32)
    y, p = np.full(size, -1, np.float32), np.arange(size, dtype=np.int64) % 2
    run(module, {"x": x, "y": y, "p": p, "n": size})
    return y.tolist()


@pytest.mark.parametrize("name", HOISTED)
def test_a_vector_that_stays_the_same_is_read_before_the_loop(name):
    before = program(HOISTED[name])
    after = hoist_invariant_loads(before)
    kept = [stmt for stmt in stmts(after.functions[0].body) if isinstance(stmt, Let)]
    assert [isinstance(let.value, Load) for let in kept] == [True]
    for size in (0, 1, 8, 13):
        assert results(after, size) == results(before, size)


@pytest.mark.parametrize("name", LEFT)
def test_other_loads_stay_where_they_are(name):
    before = program(LEFT[name])
    assert hoist_invariant_loads(before) == before


def test_nothing_is_read_where_the_loop_does_not_run():
    """The interpreter would stop at an access out of bounds."""
    text = f"for i in T.serial(n - 8):\n    {INTO.format('i')}{RUN.format(4)}"
    after = hoist_invariant_loads(program(text))
    assert any(isinstance(stmt, Let) for stmt in stmts(after.functions[0].body))
    assert results(after, 5) == [-1.0] * 5


def test_a_caller_sets_the_number_of_vectors():
    before = program(next(iter(HOISTED.values())))
    assert hoist_invariant_loads(before, max_vectors=0) == before
    assert hoist_invariant_loads(before, max_vectors=1) != before
