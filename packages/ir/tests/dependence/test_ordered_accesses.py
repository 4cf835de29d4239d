"""Orders of the accesses of whole iterations, in which several inner loops visit the elements of a row."""

from __future__ import annotations

import pytest

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.arith import prover
from gossamer_ir.arith.elimination import Eliminator
from gossamer_ir.dependence.ordered_accesses import are_apart, are_ordered
from gossamer_ir.nodes import For
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.buffer_uses import buffers_written

HEAD = """
@T.prim_func
def rows(x: T.handle, p: T.handle, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (nnz,), "float32")
    P = T.match_buffer(p, (m + 1,), "int32")
    T.assume(monotone(P))
    for i in T.serial(m):
"""
VISITS = """
        for {var} in T.serial(T.int64(P[i + 1]) - T.int64(P[i]) + {more}):
            X[T.int64(P[i]) + {var}] = 1.0
"""
VISITS_IF = """
        for {var} in T.serial({extent}):
            if {var} < T.int64(P[i + 1]) - T.int64(P[i]):
                X[T.int64(P[i]) + {var}] = 1.0
"""


def is_ordered(text):
    """Return whether the iterations of the outermost loop of a program are proved to be ordered."""
    function = parse_module(HEAD + text).functions[0]
    (loop,) = function.body
    assert isinstance(loop, For)
    listed = list(accesses(loop.body, buffers={"X"}))
    return are_ordered(listed, loop, changing={"X"}, function=function)


def visits(*more):
    """Return a loop for each number of elements beyond the end of the row."""
    return "".join(VISITS.format(var=f"j{number}", more=count) for number, count in enumerate(more))


@pytest.mark.parametrize("more", [(0,), (0, 0), (0, -1, 0), (-1, -1)])
def test_loops_that_stay_in_their_rows_are_ordered(more):
    assert is_ordered(visits(*more))


@pytest.mark.parametrize("more", [(1,), (0, 1), (1, 0), (0, 0, 1, 0)])
def test_one_loop_that_leaves_its_row_is_found(more):
    assert not is_ordered(visits(*more))


@pytest.mark.parametrize("extents", [(8, 8), (8, 16), (16, 8)])
def test_loops_with_a_condition_are_ordered_whatever_their_extents(extents):
    texts = (
        VISITS_IF.format(var=f"j{number}", extent=extent) for number, extent in enumerate(extents)
    )
    assert is_ordered("".join(texts))


def test_loops_over_equal_ranges_are_proved_once(monkeypatch):
    goals = []
    proves = Eliminator.proves

    def counted(search, goal):
        goals.append(goal)
        return proves(search, goal)

    monkeypatch.setattr(Eliminator, "proves", counted)
    # Without the answers of other tests, and of the first program for the second one.
    monkeypatch.setattr(prover, "_answers", {})
    assert is_ordered(visits(0))
    few = len(goals)
    prover._answers.clear()
    assert is_ordered(visits(0, 0, 0, 0, 0))
    assert len(goals) == 2 * few


UNROLLED = """
        for j in T.serial(4):
"""


def unrolled(*offsets, condition=None):
    """Return stores to row `i` of 64 elements, one for each offset, each with the condition, if any."""
    indent = " " * 12
    stores = (f"X[i * 64 + j * 16 + {offset}] = 1.0\n" for offset in offsets)
    if condition is None:
        return UNROLLED + "".join(f"{indent}{store}" for store in stores)
    return UNROLLED + "".join(
        f"{indent}if {condition.format(offset)}:\n{indent}    {store}"
        for offset, store in zip(offsets, stores, strict=True)
    )


def test_offsets_of_an_unrolled_loop_are_proved_by_the_greatest_and_the_least(monkeypatch):
    goals = []
    proves = Eliminator.proves

    def counted(search, goal):
        goals.append(goal)
        return proves(search, goal)

    monkeypatch.setattr(Eliminator, "proves", counted)
    monkeypatch.setattr(prover, "_answers", {})
    assert is_ordered(unrolled(0, 15))
    few = len(goals)
    prover._answers.clear()
    assert is_ordered(unrolled(*range(16)))
    assert len(goals) == 2 * few
    assert not is_ordered(unrolled(*range(17)))
    assert not is_ordered(unrolled(*range(-1, 16)))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("j < 100", True),  # no store needs it
        ("j * 16 + {} < 64", True),  # each needs its own
        ("j * 16 + {} < 65", False),
        ("j < 3", True),  # all need it
    ],
)
def test_conditions_of_an_unrolled_loop_may_be_needed(condition, expected):
    offsets = range(16) if condition == "j < 100" else range(0, 20, 2)
    assert is_ordered(unrolled(*offsets, condition=condition)) is expected


DISTINCT = """
@T.prim_func
def scatter(x: T.handle, p: T.handle, s: T.handle, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (nnz,), "float32")
    P = T.match_buffer(p, (m + 1,), "int32")
    S = T.match_buffer(s, (nnz,), "int32")
    T.assume(monotone(P))
    T.assume(distinct(S))
    for i in T.serial(m):
        for e in T.serial(T.int64(P[i]), T.int64(P[i + 1])):
            X[T.int64(S[e])] = 1.0
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", True),
        ("    T.assume(distinct(S))\n", "", False),
        # Another row begins where one ends, so that they share this place.
        ("T.int64(P[i + 1])):", "T.int64(P[i + 1]) + 1):", False),
        ("X[T.int64(S[e])]", "X[T.int64(S[e]) // 2]", False),
        # The array is distinct at first only.
        ("X[T.int64(S[e])] = 1.0", "X[T.int64(S[e])] = 1.0\n            S[e] = 0", False),
        ("X[T.int64(S[e])] = 1.0", "X[T.int64(S[e])] = X[e]", False),
        # Values that the loop writes may not be assumed, and need not be here.
        (
            "X[T.int64(S[e])] = 1.0",
            "if X[T.int64(S[e])] > 0.0:\n                X[T.int64(S[e])] = 1.0",
            True,
        ),
    ],
)
def test_indices_from_an_array_without_duplicates_are_apart_where_their_places_are(
    before, after, expected
):
    function = parse_module(DISTINCT.replace(before, after)).functions[0]
    (loop,) = function.body
    listed = list(accesses(loop.body, buffers={"X"}))
    changing = buffers_written(loop.body)
    assert are_apart(listed, loop, changing=changing, function=function) is expected
