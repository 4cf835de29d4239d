"""Searches of every kind and in every position find at the flat stage what NumPy finds."""

from __future__ import annotations

import numpy as np
import pytest
from searches import program

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.verify import diagnostics
from gossamer_lower import FLAT_PASSES, hoist_searches, lower_to_flat, vectorize_loops

SORTED = {
    "empty": [],
    "one": [3],
    "equal": [2, 2, 2, 2],
    "gaps": [-4, 0, 0, 1, 5, 5, 5, 9, 30],
    "long": list(range(0, 60, 3)),
}
VALUES = {
    "ascending": np.arange(-6, 40),
    "descending": np.arange(40, -6, -1),
    "mixed": np.arange(60) * 17 % 43 - 4,
    "none": np.arange(0),
}
ORACLES = {
    "lower": lambda array, values: np.searchsorted(array, values, "left"),
    "upper": lambda array, values: np.searchsorted(array, values, "right"),
    "exact": lambda array, values: np.array(
        [array.index(value) if value in array else -1 for value in values], int
    ),
}
SEARCH = 'T.search("KIND", P, begin=0, end=n, value=X[VALUE])'
LOOPS = {
    "in a loop": "for i in T.serial(c): Y[i] = " + SEARCH.replace("VALUE", "i"),
    "in a parallel loop": "for i in T.parallel(c): Y[i] = " + SEARCH.replace("VALUE", "i"),
    "in unrolled copies": """
for i in T.serial(c // 2):
    for u in T.unroll(2):
        Y[i * 2 + u] = SEARCH(i * 2 + u) + 0
for i in T.serial(c // 2 * 2, c):
    Y[i] = SEARCH(i)
""",
    "under a condition": """
for i in T.serial(c):
    Y[i] = -1
    if n > 0:
        Y[i] = SEARCH(i)
    if n <= 0:
        Y[i] = SEARCH(i)
""",
    "where it is evaluated": """
for i in T.serial(c + 2):
    if i < c:
        Y[i] = T.if_then_else(i >= 0, SEARCH(i), 0)
""",
    "as a bound": """
for i in T.serial(c):
    Y[i] = 0
    for t in T.serial(T.max(SEARCH(i), 0)):
        Y[i] = Y[i] + 1
    Y[i] = T.if_then_else(SEARCH(i) < 0, SEARCH(i), Y[i])
""",
}


def spelled(body, kind):
    parts = body.split("SEARCH(")
    text = parts[0]
    for part in parts[1:]:
        value, _, rest = part.partition(")")
        text += SEARCH.replace("VALUE", value) + rest
    return text.replace("KIND", kind)


@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("where", LOOPS)
def test_searches_find_what_numpy_finds(where, kind):
    """On every array, the program and its last form; the forms between them, whose defects the last one
    inherits, on one array that has gaps and equal elements. Each dtype of the array meets each kind of
    search and each place."""
    index = ("int32", "int64")[([*LOOPS].index(where) + [*ORACLES].index(kind)) % 2]
    module = program(spelled(LOOPS[where], kind), index)
    stages = [module]
    for lower in FLAT_PASSES:
        lowered = lower(stages[-1])
        assert diagnostics(lowered) == ()
        if lowered != stages[-1]:  # most passes leave it alone
            stages.append(lowered)
    for name, array in SORTED.items():
        for values in VALUES.values():
            for stage in stages if name == "gaps" else (stages[0], stages[-1]):
                y = np.full(len(values), 77, np.int64)
                run(stage, {"x": values.astype(np.int64), "y": y, "p": np.array(array, index),
                            "n": len(array), "c": len(values)})  # fmt: skip
                np.testing.assert_array_equal(y, ORACLES[kind](array, list(values)))


WINDOWS = """
for i in T.serial(c):
    Y[i] = T.search("KIND", P, begin=i, end=T.min(i + 3, n), value=4)
"""


@pytest.mark.parametrize("kind", ORACLES)
def test_windows_that_move_are_searched_from_scratch(kind):
    array = [1, 2, 4, 4, 5, 6]
    flat = lower_to_flat(program(WINDOWS.replace("KIND", kind)))
    y = np.zeros(7, np.int64)
    run(flat, {"x": y, "y": y, "p": np.array(array, "i4"), "n": 6, "c": 7})
    expected = []
    for i in range(7):
        position = ORACLES[kind](array[i : i + 3], [4])[0]
        expected.append(position if position < 0 else max(position + i, i))
    assert y.tolist() == expected


LANES = """
for i in T.serial(c // 8):
    for l in T.vectorized(8):
        Y[i * 8 + l] = X[i * 8 + l] + T.search("upper", P, begin=0, end=n, value=VALUE)
"""


def test_one_search_serves_all_lanes():
    flat = lower_to_flat(program(LANES.replace("VALUE", "i")))
    y = np.zeros(16, np.int64)
    run(flat, {"x": y, "y": y, "p": np.array([0, 0, 1], "i4"), "n": 3, "c": 16})
    assert y.tolist() == [2] * 8 + [3] * 8


REFUSED = [
    (vectorize_loops, "lower.vectorize_loops.no_vector_form", LANES.replace("VALUE", "i * 8 + l")),
    (hoist_searches, "lower.hoist_searches.depends_on_loop", """
while Y[0] < T.search("upper", P, begin=0, end=n, value=X[Y[0]]):
    Y[0] = Y[0] + 1
"""),
    (hoist_searches, "lower.hoist_searches.depends_on_loop", """
for i in T.parallel(c, weight=T.search("upper", P, begin=0, end=n, value=i)):
    Y[i] = 1
"""),
]  # fmt: skip


@pytest.mark.parametrize(("lower", "code", "body"), REFUSED)
def test_what_is_not_lowered_is_refused_by_name(lower, code, body):
    module = program(body)
    with pytest.raises(UnsupportedError) as caught:
        lower(module)
    assert caught.value.code == code
