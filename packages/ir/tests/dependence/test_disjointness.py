"""Verdicts on iterations of a loop, compared with the elements that they access in small cases."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest

from gossamer_ir.core.build import ONE, ZERO, index
from gossamer_ir.dependence.disjointness import disjointness, written_accesses
from gossamer_ir.nodes import Distinct, For, Function, Load, SortedSegments, Store
from gossamer_ir.script import parse_expr

DTYPES = {"i": "int64", "j": "int64", "P": "int64", "Q": "int64", "R": "int32", "U": "int64"}
INDICES = (
    "i", "j", "0", "0", "1", "i + j", "i - j", "2 * i", "2 * i + j", "3 * i + j", "4 * j + i", "-4 * i + j",
    "i // 2", "i % 2", "(4 * i + j) // 4", "(4 * i + j) % 4", "(3 * i + j) // 2", "P[i]", "P[i] + j",
    "P[j]", "Q[i]", "P[4 * i + j]", "4 * P[i] + j",
    "4 * T.int64(R[i]) + j", "2 * T.int64(R[i]) + j", "3 * T.int64(R[j]) + i", "T.int64(R[i]) + 16 * j",
    "P[i] + 1", "2 * T.int64(R[i]) + j + 3", "i // 2 + 5", "i % 2 - 1",
    "U[i // 2, 4 * (i % 2) + j]", "U[0, 4 * i + j]", "U[j, 4 * i]",
)  # fmt: skip
FACTS = (Distinct("P"), Distinct("R"), SortedSegments("U", None, unique=True))
DISTINCT = [7, 2, 9, 0, 15, 4, 11, 1, 6, 13, 3, 8, 14, 5, 10, 12]
ROWS = {(row, place): row + 2 * place for row in range(4) for place in range(16)}
ARRAYS = {"P": DISTINCT, "Q": [1] * 16, "R": DISTINCT, "T": SimpleNamespace(int64=int), "U": ROWS}


def random_accesses(random):
    """One store or two, and often a load, of elements with one or two indices."""
    rank = random.choice((1, 1, 2))
    stores = random.choice((1, 1, 2))
    loads = random.choice((0, 0, 1))
    texts = [tuple(random.choices(INDICES, k=rank)) for _ in range(stores + loads)]
    if random.random() < 0.5:  # accesses to the same elements
        texts = [texts[0]] * len(texts)
    return texts[:stores], texts[stores:]


def function_of(stores, loads, extents):
    """Two nested loops around the accesses."""
    elements = [tuple(parse_expr(text, DTYPES) for text in texts) for texts in (*stores, *loads)]
    values = [Load("Y", at, "int64") for at in elements[len(stores) :]] or [ONE]
    body = tuple(Store("Y", at, values[0]) for at in elements[: len(stores)])
    inner = For("j", ZERO, index(extents["j"]), body)
    outer = For("i", ZERO, index(extents["i"]), (inner,))
    return outer, Function("f", (), (outer,), facts=FACTS)


def random_cases(seed):
    """Yield extents, stores and loads."""
    random = Random(seed)
    for _ in range(150):
        extents = {name: random.randint(1, 4) for name in "ij"}
        yield extents, *random_accesses(random)


def verdict_on(loop, outer, function, *, varying):
    forms = written_accesses(outer.body, values={}, function=function)["Y"]
    return disjointness(loop, forms, varying=varying, function=function)


def has_race(stores, loads, extents):
    """Return whether different iterations of `i` access one element, and one of them writes it."""
    points = itertools.product(range(extents["i"]), range(extents["j"]))
    return _is_shared(stores, loads, [(i, {"i": i, "j": j}) for i, j in points])


def has_inner_race(stores, loads, extents):
    """Return whether in some iteration of `i` different iterations of `j` access one element, and one of them
    writes it."""
    return any(
        _is_shared(stores, loads, [(j, {"i": i, "j": j}) for j in range(extents["j"])])
        for i in range(extents["i"])
    )


def _is_shared(stores, loads, points):
    touched = [
        (iteration, is_store, tuple(eval(text, {}, {**ARRAYS, **values}) for text in texts))
        for iteration, values in points
        for is_store, several in ((True, stores), (False, loads))
        for texts in several
    ]
    return any(
        one[0] != other[0] and one[2] == other[2] and (one[1] or other[1])
        for one, other in itertools.combinations(touched, 2)
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_verdict_holds_for_the_elements_that_are_accessed(seed):
    verdicts = Counter()
    for extents, stores, loads in random_cases(seed):
        outer, function = function_of(stores, loads, extents)
        verdict = verdict_on("i", outer, function, varying={"i", "j"})
        verdicts[verdict, extents["i"] > 1] += 1
        if verdict != "unknown":
            assert has_race(stores, loads, extents) == (verdict == "race"), (stores, loads, extents)
    assert min(verdicts["disjoint", True], verdicts["race", True]) >= 3


@pytest.mark.parametrize("seed", range(8))
def test_a_verdict_on_an_inner_loop_holds_in_each_iteration_around_it(seed):
    verdicts = Counter()
    for extents, stores, loads in random_cases(seed):
        outer, function = function_of(stores, loads, extents)
        verdict = verdict_on("j", outer, function, varying={"j"})
        verdicts[verdict] += 1
        if verdict == "disjoint":
            assert not has_inner_race(stores, loads, extents), (stores, loads, extents)
    assert verdicts["disjoint"] >= 3


def test_a_row_of_a_block_that_an_array_lists_is_of_one_iteration():
    """The place in the block is that of an inner loop, or of one around the loop."""
    outer, function = function_of([("4 * T.int64(R[i]) + j",)], [], {"i": 4, "j": 4})
    assert verdict_on("i", outer, function, varying={"i", "j"}) == "disjoint"
    outer, function = function_of([("3 * T.int64(R[j]) + i",)], [], {"i": 4, "j": 4})
    assert verdict_on("j", outer, function, varying={"j"}) == "disjoint"
    outer, function = function_of([("3 * T.int64(R[i]) + j",)], [], {"i": 4, "j": 4})
    assert verdict_on("i", outer, function, varying={"i", "j"}) == "unknown"
    # Four times an int64 may wrap, so that different values give one number.
    outer, function = function_of([("4 * P[i] + j",)], [], {"i": 4, "j": 4})
    assert verdict_on("i", outer, function, varying={"i", "j"}) == "unknown"


def test_quotients_and_remainders_to_which_numbers_are_added_determine_an_iteration():
    outer, function = function_of(
        [("(4 * i + j) // 4 + 3", "(4 * i + j) % 4")], [], {"i": 4, "j": 4}
    )
    assert verdict_on("i", outer, function, varying={"i", "j"}) == "disjoint"


def test_positions_of_one_row_without_duplicates_are_of_one_iteration():
    """Rows of an array may have values in common."""
    for text, verdict in (("U[0, 4 * i + j]", "disjoint"), ("U[j, 4 * i]", "unknown")):
        outer, function = function_of([(text,)], [], {"i": 4, "j": 4})
        assert verdict_on("i", outer, function, varying={"i", "j"}) == verdict
