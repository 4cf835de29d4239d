"""Checks of facts about index arrays, compared with a slow oracle."""

import random

import numpy as np
import pytest

from gossamer_backend.arguments.fact_errors import require_facts
from gossamer_backend.compiled_checks.compiled_check import GeneratedCheck
from gossamer_backend.export.spelling import FACT_SENTENCES
from gossamer_ir.core.build import index
from gossamer_ir.errors import ArgumentError, InternalError, UnsupportedError
from gossamer_ir.facts import index_arrays
from gossamer_ir.facts.fact_violations import FACT_CHECKS
from gossamer_ir.nodes import (
    FACTS,
    BitCounts,
    Distinct,
    Expr,
    HasValue,
    Monotone,
    Name,
    Node,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)


def holds(needed, **options):
    try:
        require_facts(needed, {}, **options)
    except ArgumentError:
        return False
    return True


@pytest.fixture
def small_chunks(monkeypatch):
    """Arrays of a test are checked in several chunks."""
    monkeypatch.setattr(index_arrays, "CHUNK_ELEMENTS", 3)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_offsets_that_are_no_sums_of_products_are_named_by_the_first(dtype):
    sides = [np.array(values, dtype) for values in ([0, 2, 2, 5, 6], [0, 1, 4, 6, 6])]
    good = np.array([0, 2, 2, 8, 8], dtype)
    arrays = {"X": good, "L": sides[0], "R": sides[1]}
    names = {"X": "x", "L": "l", "R": "r"}
    needed = (ProductSteps("X", "L", "R"),)
    require_facts(needed, {}, arrays=arrays, names=names)
    for at in range(1, 5):
        wrong = np.where(np.arange(5) < at, good, good + 1).astype(dtype)
        with pytest.raises(ArgumentError, match=rf"Element {at} of 'x' is {wrong[at]}") as caught:
            require_facts(needed, {}, arrays=arrays | {"X": wrong}, names=names)
        assert caught.value.code == "kernel.product"
    with pytest.raises(ArgumentError, match="'x' has 4 elements; expected as many"):
        require_facts(needed, {}, arrays=arrays | {"X": good[:4]}, names=names)


DTYPES = ["uint8", "int8", "uint16", "int32", "int64", "uint64", "float32"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_value_is_there_once(dtype):
    random = np.random.default_rng(3)
    needed, names = (Distinct("X"),), {"X": "x"}
    for size in (0, 1, 2, 100):
        for low, step in ((0, 1), (20, 1), (-50 if dtype[0] in "if" else 0, 1), (0, 2)):
            good = random.permutation(np.arange(low, low + step * size, step)[:size]).astype(dtype)
            require_facts(needed, {}, arrays={"X": good}, names=names)
            if size < 2:
                continue
            first, second = sorted(random.choice(size, 2, replace=False))
            wrong = good.copy()
            wrong[second] = wrong[first]
            message = f"Element {second} of 'x' is {wrong[first]}, as is element {first}"
            with pytest.raises(ArgumentError, match=message) as caught:
                require_facts(needed, {}, arrays={"X": wrong}, names=names)
            assert caught.value.code == "kernel.distinct"
            rows = wrong.reshape(-1, 2)
            assert not holds(needed, arrays={"X": rows}, names=names)


def test_padding_may_be_there_several_times():
    values, names = np.array([9, 3, 9, 1], np.int32), {"X": "x"}
    needed = (Distinct("X"), PaddedSlots("X", index(9)))
    require_facts(needed, {}, arrays={"X": values}, names=names)
    wrong = np.array([9, 9, 3, 1, 3], np.int32)
    with pytest.raises(ArgumentError, match="Element 4 of 'x' is 3, as is element 2"):
        require_facts(needed, {}, arrays={"X": wrong}, names=names)


def test_unused_slots_of_a_padded_axis_may_repeat():
    slots = np.array([[0, 2, 2], [1, 1, 2]], np.int32)
    arrays, names = {"X": slots[:1]}, {"X": "x"}
    needed = (SortedSegments("X", None, True), PaddedSlots("X", index(2)))
    require_facts(needed, {}, arrays=arrays, names=names)
    with pytest.raises(ArgumentError, match="Element 4 of 'x' is 1, which is equal to"):
        require_facts(needed, {}, arrays={"X": slots}, names=names)


def test_segments_with_wild_offsets_are_refused_not_followed():
    arrays = {"X": np.array([1, 0], np.int32), "P": np.array([0, -5, 9], np.int32)}
    needed = (SortedSegments("X", "P", True),)
    with pytest.raises(ArgumentError, match="Element 1 of 'p' is -5") as caught:
        require_facts(needed, {}, arrays=arrays, names={"X": "x", "P": "p"})
    assert caught.value.code == "kernel.range"


def test_relations_are_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"subset\(I, J\)"):
        require_facts((Relation("subset", "I", "J"),), {}, arrays={}, names={})


class Multiples(Node, frozen=True):
    """A type of fact that the language lacks: every value is a multiple of `factor`."""

    buffer: Name
    factor: Expr


def test_every_kind_of_fact_has_a_check_and_a_sentence():
    assert set(FACT_CHECKS) == set(FACT_SENTENCES) == set(FACTS)


def test_a_fact_without_a_check_is_refused():
    arrays, needed = {"X": np.array([0, 5])}, (Monotone("X"), Multiples("X", index(4)))
    with pytest.raises(InternalError, match="Facts have no check: Multiples"):
        require_facts(needed, {}, arrays=arrays, names={"X": "x"})


def test_a_fact_without_a_compiled_check_is_left_to_numpy():
    check = GeneratedCheck(lambda name, program: pytest.fail("compiled"), max_numpy_elements=0)
    arrays, fact = {"X": np.array([0, 5])}, HasValue("X", index(1), index(5))
    assert check((fact,), {}, arrays)
    assert not check((fact, Multiples("X", index(4))), {}, arrays)


def test_a_subset_is_one_in_each_segment():
    random.seed(5)
    for _ in range(300):
        rows = [
            [sorted(random.sample(range(5), random.randint(0, 4))) for _ in range(4)]
            for _ in range(2)
        ]
        if random.randint(0, 1):
            rows[0] = [[x for x in mine if x in other] for mine, other in zip(*rows, strict=True)]
        arrays = {}
        for (values, starts), reported in zip((("X", "P"), ("Y", "Q")), rows, strict=True):
            arrays[values] = np.array([x for row in reported for x in row], np.int32)
            arrays[starts] = np.cumsum([0, *map(len, reported)]).astype(np.int64)
        needed = (
            Relation("subset", "X", "Y"),
            SortedSegments("X", "P", True),
            SortedSegments("Y", "Q", True),
        )
        names = {name: name.lower() for name in arrays}
        is_subset = all(set(mine) <= set(other) for mine, other in zip(*rows, strict=True))
        assert holds(needed, arrays=arrays, names=names) == is_subset
        apart = (Relation("disjoint", "X", "Y"), *needed[1:])
        is_disjoint = not any(set(mine) & set(other) for mine, other in zip(*rows, strict=True))
        assert holds(apart, arrays=arrays, names=names) == is_disjoint


def test_padding_is_in_no_set():
    arrays = {"X": np.array([[0, 3], [1, 3]]), "Y": np.array([[1, 3], [1, 2]])}
    rows = (SortedSegments("X", None, True), SortedSegments("Y", None, True))
    padded = (*rows, PaddedSlots("X", index(3)), PaddedSlots("Y", index(3)))
    names = {"X": "x", "Y": "y"}
    with pytest.raises(
        ArgumentError, match="Element 2 of 'x' is 1, which is in its segment of 'y'"
    ) as c:
        require_facts((Relation("disjoint", "X", "Y"), *padded), {}, arrays=arrays, names=names)
    assert c.value.code == "kernel.disjoint"
    arrays["X"][1, 0] = 0
    require_facts((Relation("disjoint", "X", "Y"), *padded), {}, arrays=arrays, names=names)
    arrays["X"][:] = [[1, 3], [2, 3]]
    require_facts((Relation("subset", "X", "Y"), *padded), {}, arrays=arrays, names=names)


def test_padding_of_another_axis_is_a_value_of_a_longer_one():
    arrays = {"X": np.array([[0, 3], [1, 4]]), "Y": np.array([[1, 3], [2, 3]])}
    rows = (SortedSegments("X", None, True), SortedSegments("Y", None, True))
    needed = (*rows, PaddedSlots("X", index(9)), PaddedSlots("Y", index(3)))
    names = {"X": "x", "Y": "y"}
    require_facts((Relation("disjoint", "X", "Y"), *needed), {}, arrays=arrays, names=names)
    arrays["X"][0] = [1, 3]
    with pytest.raises(ArgumentError, match="Element 1 of 'x' is 3, which is not in its segment"):
        require_facts((Relation("subset", "X", "Y"), *needed), {}, arrays=arrays, names=names)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
def test_a_word_with_other_bits_than_the_offsets_say_is_named(dtype):
    words = np.array([[0b101, 0], [0b11, 1], [0b111, 0]], dtype)
    offsets = np.array([0, 2, 2, 4, 5, 8, 8], np.int32)
    arrays, names = {"W": words, "P": offsets}, {"W": "w", "P": "p"}
    needed = (BitCounts("W", "P", index(3)),)
    require_facts(needed, {}, arrays=arrays, names=names)
    for at, word in [(0, 0b100), (2, 0b111), (4, 0b1011), (5, 1)]:
        wrong = words.copy()
        wrong.flat[at] = word
        with pytest.raises(ArgumentError, match=f"Element {at} of 'w' is {word:#b}") as caught:
            require_facts(needed, {}, arrays=arrays | {"W": wrong}, names=names)
        assert caught.value.code == "kernel.bits"
    with pytest.raises(ArgumentError, match="'p' has 6 elements; expected 7, one more than 'w'"):
        require_facts(needed, {}, arrays=arrays | {"P": offsets[:6]}, names=names)
