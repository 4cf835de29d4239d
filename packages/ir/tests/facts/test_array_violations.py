"""Violations of properties of index arrays, compared with a slow oracle."""

import random
from itertools import pairwise

import numpy as np
import pytest

from gossamer_ir.facts import index_arrays
from gossamer_ir.facts.array_violations import (
    disjoint_violation,
    monotone_violation,
    order_violation,
    range_violation,
    subset_violation,
    value_violation,
)
from gossamer_ir.facts.index_arrays import Segments, first_wrong_product, is_distinct, segments_of


def is_ordered(array, *, indptr, unique, pad=None):
    return order_violation("x", segments_of(array, indptr, pad=pad), unique=unique) is None


@pytest.fixture
def small_chunks(monkeypatch):
    """Arrays of a test are checked in several chunks."""
    monkeypatch.setattr(index_arrays, "CHUNK_ELEMENTS", 3)


def segments_hold(values, indptr, *, unique, pad=None):
    for begin, end in pairwise(indptr):
        for before, value in pairwise(values[begin:end]):
            is_good = before < value if unique else before <= value
            if not is_good and not (before == value == pad):
                return False
    return True


@pytest.mark.usefixtures("small_chunks")
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
        array, starts = np.array(values, np.int32), np.array(indptr, np.int64)
        verdict = is_ordered(array, indptr=starts, unique=unique, pad=pad)
        assert verdict == expected, (values, indptr, pad)
        verdicts.add(verdict)
    assert verdicts == {True, False}


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint16"])
def test_ranges_and_monotone_agree_with_a_slow_reading(dtype):
    random.seed(11)
    low_end = 0 if dtype.startswith("u") else -2
    for _ in range(300):
        values = [random.randint(low_end, 6) for _ in range(random.randint(0, 8))]
        array = np.array(values, dtype)
        low, high = random.randint(-2, 2), random.randint(2, 7)
        in_range = all(low <= value < high for value in values)
        assert (range_violation(("x", array), low=low, high=high) is None) == in_range
        assert (monotone_violation(("x", array)) is None) == (values == sorted(values))


def test_an_element_that_is_not_what_it_should_be_is_named():
    offsets = np.array([0, 2, 3], np.int32)
    assert value_violation(("x", offsets), at=0, value=0) is None
    assert value_violation(("x", offsets), at=2, value=3) is None
    violation = value_violation(("x", offsets), at=2, value=4)
    assert violation.property == "value"
    assert violation.sentence == "Element 2 of 'x' is 3; expected 4."


@pytest.mark.parametrize(("at", "size"), [(3, 3), (-1, 3), (-1, 0), (0, 0)])
def test_an_element_that_does_not_exist_has_no_value(at, size):
    violation = value_violation(("x", np.zeros(size, np.int32)), at=at, value=0)
    expected = f"Element {at} of 'x' does not exist in an array of size {size}; expected 0."
    assert violation.sentence == expected


def test_what_is_not_a_number_lies_in_no_range():
    violation = range_violation(("x", np.array([0, np.nan, 2])), low=0, high=3)
    assert violation.sentence.startswith("Element 1 of 'x' is nan")


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_values_far_apart_are_there_once(dtype):
    largest = np.iinfo(dtype).max
    values = np.array([largest, 0, 7, largest - 1], dtype)
    assert is_distinct(values)
    assert not is_distinct(np.append(values, values[:1]))
    if dtype[0] == "i":
        assert is_distinct(np.append(values, np.array([np.iinfo(dtype).min], dtype)))


def test_a_product_that_wraps_around_is_none():
    large = np.array([0, 2**32], np.int64)
    assert first_wrong_product(np.zeros(2, np.int64), large, large) == 1


def test_the_rows_of_a_buffer_are_its_segments():
    rows = np.array([[0, 2], [1, 3]], np.int32)
    backwards = rows[:, ::-1].copy()
    assert is_ordered(rows, indptr=None, unique=True)
    assert monotone_violation(("x", rows)) is None
    assert not is_ordered(backwards, indptr=None, unique=True)
    assert monotone_violation(("x", backwards)).property == "monotone"
    assert is_ordered(np.zeros((2, 0), np.int32), indptr=None, unique=True)
    assert monotone_violation(("x", np.zeros((0, 3), np.int32))) is None


def test_coordinates_as_large_as_there_are_are_told_apart_by_segment():
    far = 2**61
    starts = np.array([0, 1, 2, 3, 4, 5])
    x = Segments(np.array([far, 0, far, 0, 1]), starts)
    y = Segments(np.array([0, far, 0, far, 0]), starts)
    assert disjoint_violation("x", x, y, of="y") is None
    violation = subset_violation("x", x, y, of="y")
    assert violation.sentence.startswith(f"Element 0 of 'x' is {far}")


def test_the_first_value_that_is_not_in_its_segment_is_named():
    count = index_arrays.SEGMENTS + 3
    starts, values = np.arange(count + 1), np.full(count, 7, np.int32)
    other = values.copy()
    other[count - 2 :] = 3
    violation = subset_violation("x", Segments(values, starts), Segments(other, starts), of="y")
    assert violation.sentence.startswith(f"Element {count - 2} of 'x' is 7")
    nothing = Segments(values[:0], np.zeros(9, int))
    assert subset_violation("x", nothing, Segments(other, starts[:3]), of="y") is None


def test_a_sound_large_array_is_read_in_chunks():
    count = 3 * index_arrays.CHUNK_ELEMENTS + 5
    indices = np.arange(count, dtype=np.int32) % 1000
    starts = np.append(np.arange(0, count, 1000), count)
    assert is_ordered(indices, indptr=starts, unique=True)
    at = 2 * index_arrays.CHUNK_ELEMENTS
    indices[at] = indices[at - 1]
    violation = order_violation("x", segments_of(indices, starts), unique=True)
    assert violation.property == "unique"
    assert violation.sentence.startswith(f"Element {at} of 'x'")
