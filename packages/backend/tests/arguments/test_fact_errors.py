"""Checks of facts about index arrays, compared with a slow oracle."""

import random
from itertools import pairwise

import numpy as np
import pytest

from gossamer_backend.arguments.fact_errors import (
    FACT_CHECKS,
    check_disjoint,
    check_monotone,
    check_range,
    check_segments,
    check_subset,
    check_value,
    require_facts,
)
from gossamer_backend.compiled_checks.compiled_check import GeneratedCheck
from gossamer_backend.export.spelling import FACT_SENTENCES
from gossamer_ir.core.build import index
from gossamer_ir.errors import ArgumentError, InternalError, UnsupportedError
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
from gossamer_ir.support import index_arrays
from gossamer_ir.support.index_arrays import Segments, first_wrong_product, is_distinct


def holds(check, *args, **options):
    try:
        check("x", *args, **options)
    except ArgumentError:
        return False
    return True


def segments_hold(values, indptr, *, unique, pad=None):
    for begin, end in pairwise(indptr):
        for before, value in pairwise(values[begin:end]):
            is_good = before < value if unique else before <= value
            if not is_good and not (before == value == pad):
                return False
    return True


@pytest.fixture
def small_pieces(monkeypatch):
    """Arrays of a test are checked in several pieces."""
    monkeypatch.setattr(index_arrays, "PIECE", 3)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("unique", [True, False])
def test_segments_agree_with_a_slow_reading(unique):
    random.seed(7)
    verdicts = set()
    for _ in range(400):
        size = random.randint(0, 9)
        values = [random.randint(0, 3) for _ in range(size)]
        indptr = sorted(random.randint(0, size) for _ in range(random.randint(1, 6)))
        pad = random.choice([None, 3])
        expected = segments_hold(values, indptr, unique=unique, pad=pad)
        arrays = np.array(values, np.int32), np.array(indptr, np.int64)
        found = holds(check_segments, arrays[0], indptr=arrays[1], unique=unique, pad=pad)
        assert found == expected, (values, indptr, pad)
        verdicts.add(found)
    assert verdicts == {True, False}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint16"])
def test_ranges_and_monotone_agree_with_a_slow_reading(dtype):
    random.seed(11)
    low_end = 0 if dtype.startswith("u") else -2
    for _ in range(300):
        values = [random.randint(low_end, 6) for _ in range(random.randint(0, 8))]
        array = np.array(values, dtype)
        low, high = random.randint(-2, 2), random.randint(2, 7)
        in_range = all(low <= value < high for value in values)
        assert holds(check_range, array, low=low, high=high) == in_range
        assert holds(check_monotone, array) == (values == sorted(values))


def test_an_element_that_is_not_what_it_should_be_is_named():
    offsets = np.array([0, 2, 3], np.int32)
    assert holds(check_value, offsets, at=0, value=0)
    assert holds(check_value, offsets, at=2, value=3)
    with pytest.raises(ArgumentError, match=r"Element 2 of 'x' is 3; expected 4\.") as caught:
        check_value("x", offsets, at=2, value=4)
    assert caught.value.code == "kernel.value"


@pytest.mark.parametrize(("at", "size"), [(3, 3), (-1, 3), (-1, 0), (0, 0)])
def test_an_element_that_does_not_exist_has_no_value(at, size):
    with pytest.raises(
        ArgumentError,
        match=f"Element {at} of 'x' does not exist in an array of size {size}; expected 0",
    ):
        check_value("x", np.zeros(size, np.int32), at=at, value=0)


def test_what_is_not_a_number_lies_in_no_range():
    with pytest.raises(ArgumentError, match="Element 1 of 'x' is nan"):
        check_range("x", np.array([0, np.nan, 2]), low=0, high=3)


@pytest.mark.usefixtures("small_pieces")
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
            found = f"Element {second} of 'x' is {wrong[first]}, as is element {first}"
            with pytest.raises(ArgumentError, match=found) as caught:
                require_facts(needed, {}, arrays={"X": wrong}, names=names)
            assert caught.value.code == "kernel.distinct"
            rows = wrong.reshape(-1, 2)
            assert not holds(check_needed, needed, arrays={"X": rows}, names=names)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_values_far_apart_are_there_once(dtype):
    largest = np.iinfo(dtype).max
    values = np.array([largest, 0, 7, largest - 1], dtype)
    assert is_distinct(values)
    assert not is_distinct(np.append(values, values[:1]))
    if dtype[0] == "i":
        assert is_distinct(np.append(values, np.array([np.iinfo(dtype).min], dtype)))


def test_padding_may_be_there_several_times():
    values, names = np.array([9, 3, 9, 1], np.int32), {"X": "x"}
    needed = (Distinct("X"), PaddedSlots("X", index(9)))
    require_facts(needed, {}, arrays={"X": values}, names=names)
    wrong = np.array([9, 9, 3, 1, 3], np.int32)
    with pytest.raises(ArgumentError, match="Element 4 of 'x' is 3, as is element 2"):
        require_facts(needed, {}, arrays={"X": wrong}, names=names)


def test_a_product_that_wraps_around_is_none():
    large = np.array([0, 2**32], np.int64)
    assert first_wrong_product(np.zeros(2, np.int64), large, large) == 1


def test_the_rows_of_a_buffer_are_its_segments():
    rows = np.array([[0, 2], [1, 3]], np.int32)
    assert holds(check_segments, rows, indptr=None, unique=True)
    assert holds(check_monotone, rows)
    assert not holds(check_segments, rows[:, ::-1].copy(), indptr=None, unique=True)
    assert not holds(check_monotone, rows[:, ::-1].copy())
    assert holds(check_segments, np.zeros((2, 0), np.int32), indptr=None, unique=True)
    assert holds(check_monotone, np.zeros((0, 3), np.int32))


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
    arrays, known = {"X": np.array([0, 5])}, HasValue("X", index(1), index(5))
    assert check((known,), {}, arrays)
    assert not check((known, Multiples("X", index(4))), {}, arrays)


def check_needed(_name, needed, **options):
    require_facts(needed, {}, **options)


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
        for (values, starts), found in zip((("X", "P"), ("Y", "Q")), rows, strict=True):
            arrays[values] = np.array([x for row in found for x in row], np.int32)
            arrays[starts] = np.cumsum([0, *map(len, found)]).astype(np.int64)
        needed = (
            Relation("subset", "X", "Y"),
            SortedSegments("X", "P", True),
            SortedSegments("Y", "Q", True),
        )
        names = {name: name.lower() for name in arrays}
        is_subset = all(set(mine) <= set(other) for mine, other in zip(*rows, strict=True))
        assert holds(check_needed, needed, arrays=arrays, names=names) == is_subset
        apart = (Relation("disjoint", "X", "Y"), *needed[1:])
        is_disjoint = not any(set(mine) & set(other) for mine, other in zip(*rows, strict=True))
        assert holds(check_needed, apart, arrays=arrays, names=names) == is_disjoint


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


def test_coordinates_as_large_as_there_are_are_told_apart_by_segment():
    far = 2**61
    starts = np.array([0, 1, 2, 3, 4, 5])
    x = Segments(np.array([far, 0, far, 0, 1]), starts)
    y = Segments(np.array([0, far, 0, far, 0]), starts)
    check_disjoint("x", x, y, of="y")
    with pytest.raises(ArgumentError, match=f"Element 0 of 'x' is {far}"):
        check_subset("x", x, y, of="y")


def test_the_first_value_that_is_not_in_its_segment_is_named():
    count = index_arrays.SEGMENTS + 3
    starts, values = np.arange(count + 1), np.full(count, 7, np.int32)
    other = values.copy()
    other[count - 2 :] = 3
    with pytest.raises(ArgumentError, match=f"Element {count - 2} of 'x' is 7") as caught:
        check_subset("x", Segments(values, starts), Segments(other, starts), of="y")
    assert caught.value.code == "kernel.subset"
    nothing = Segments(values[:0], np.zeros(9, int))
    check_subset("x", nothing, Segments(other, starts[:3]), of="y")


def test_a_sound_large_array_is_read_in_pieces():
    count = 3 * index_arrays.PIECE + 5
    indices = np.arange(count, dtype=np.int32) % 1000
    starts = np.append(np.arange(0, count, 1000), count)
    check_segments("x", indices, indptr=starts, unique=True)
    indices[2 * index_arrays.PIECE] = indices[2 * index_arrays.PIECE - 1]
    with pytest.raises(ArgumentError, match=f"Element {2 * index_arrays.PIECE} of 'x'"):
        check_segments("x", indices, indptr=starts, unique=True)


@pytest.mark.usefixtures("small_pieces")
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
