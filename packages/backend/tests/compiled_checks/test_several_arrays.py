"""Checks that compare several index arrays."""

import numpy as np
import pytest
from device_checks import holds, is_found_to_hold, offsets, segments

from gossamer_ir.core.build import index, index_var
from gossamer_ir.nodes import (
    BitCounts,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)

PRODUCTS = {
    "products": (offsets(0, 6, 6, 10), offsets(0, 2, 5, 6), offsets(0, 3, 3, 7), True),
    "another step": (offsets(0, 6, 7, 10), offsets(0, 2, 5, 6), offsets(0, 3, 3, 7), False),
    "another last step": (offsets(0, 6, 6, 9), offsets(0, 2, 5, 6), offsets(0, 3, 3, 7), False),
    "one element": (offsets(0), offsets(0), offsets(0), True),
    "no elements": (offsets(), offsets(), offsets(), True),
    "fewer elements": (offsets(0, 6, 6), offsets(0, 2, 5, 6), offsets(0, 3, 3, 7), False),
    "a product that wraps around": (
        np.array([0, 0], np.int64),
        np.array([0, 1 << 32], np.int64),
        np.array([0, 1 << 32], np.int64),
        False,
    ),
    "a step that wraps around": (
        np.array([-(1 << 62), 1 << 62], np.int64),
        np.array([0, 1], np.int64),
        np.array([-(1 << 62), 1 << 62], np.int64),
        False,
    ),
}


@pytest.mark.parametrize(
    ("array", "left", "right", "expected"), PRODUCTS.values(), ids=PRODUCTS.keys()
)
def test_steps_of_products_are_compared_by_a_program(array, left, right, expected):
    facts = (ProductSteps("X", "L", "R"), Monotone("X"), Monotone("L"), Monotone("R"))
    result, programs = is_found_to_hold(facts, X=array, L=left, R=right)
    assert result == expected
    assert result <= holds(facts, X=array, L=left, R=right)
    assert len(programs) == 1


SETS = {
    "subset of segments": ("subset", (0, 2, 2, 4), (0, 3, 1, 2), (0, 3, 4, 6), (0, 1, 3, 5, 1, 2), True),
    "a value of another segment": (
        "subset", (0, 2, 2, 4), (0, 3, 1, 2), (0, 3, 4, 6), (0, 1, 3, 2, 1, 5), False,
    ),
    "an empty segment": ("subset", (0, 1), (3,), (0, 0), (), False),
    "disjoint segments": ("disjoint", (0, 2, 4), (0, 3, 1, 2), (0, 2, 4), (1, 2, 0, 3), True),
    "a common value": ("disjoint", (0, 2, 4), (0, 3, 1, 2), (0, 2, 4), (1, 2, 0, 2), False),
    "no segments": ("subset", (0,), (), (0,), (), True),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "left_offsets", "left", "right_offsets", "right", "expected"), SETS.values(), ids=SETS
)
def test_relations_of_segments_are_searched(
    kind, left_offsets, left, right_offsets, right, expected
):
    facts = (*segments(("P", "X"), ("Q", "Y")), Relation(kind, "X", "Y"))
    arrays = {
        "P": offsets(*left_offsets),
        "X": offsets(*left),
        "Q": offsets(*right_offsets),
        "Y": np.array(right, np.int64),
    }
    checked, programs = is_found_to_hold(facts, **arrays)
    assert checked == holds(facts, **arrays) == expected
    assert len(programs) == 1


ROWS_OF_SETS = {
    "padding": ("subset", [[1, 4, 4], [0, 2, 4]], [[1, 2, 3], [0, 2, 3]], True),
    "padding of both": ("disjoint", [[1, 4, 4], [0, 2, 4]], [[2, 3, 4], [1, 4, 4]], True),
    "a row of the other": ("subset", [[1, 4, 4], [0, 2, 4]], [[0, 2, 3], [1, 2, 3]], False),
}


@pytest.mark.parametrize(
    ("kind", "left", "right", "expected"), ROWS_OF_SETS.values(), ids=ROWS_OF_SETS
)
def test_relations_of_rows_ignore_padding(kind, left, right, expected):
    facts = (
        SortedSegments("X", None, unique=True),
        SortedSegments("Y", None, unique=False),
        PaddedSlots("X", index_var("n")),
        PaddedSlots("Y", index_var("n")),
        Relation(kind, "X", "Y"),
    )
    arrays = {"X": np.array(left, np.int32), "Y": np.array(right, np.int32)}
    assert is_found_to_hold(facts, **arrays)[0] == holds(facts, **arrays) == expected


@pytest.mark.parametrize(("kind", "expected"), [("subset", False), ("disjoint", True)])
def test_padding_is_not_an_element_of_the_other_set(kind, expected):
    facts = (
        SortedSegments("X", None, unique=True),
        SortedSegments("Y", None, unique=True),
        PaddedSlots("Y", index_var("n")),
        Relation(kind, "X", "Y"),
    )
    arrays = {"X": offsets(4), "Y": offsets(4)}
    assert is_found_to_hold(facts, **arrays)[0] == holds(facts, **arrays) == expected


BITS = {
    "as many bits": (np.array([5, 0, 8], np.uint8), (0, 2, 2, 3), 4, True),
    "fewer bits": (np.array([5, 0, 8], np.uint8), (0, 2, 3, 4), 4, False),
    "a bit too high": (np.array([5, 0, 16], np.uint8), (0, 2, 2, 3), 4, False),
    "all bits of a word": (np.array([2**64 - 1, 1], np.uint64), (0, 64, 65), 64, True),
    "the highest bit": (np.array([1 << 63], np.uint64), (0, 1), 63, False),
    "a word without an offset": (np.array([1, 0], np.uint32), (0, 1), 4, False),
    "no words": (np.array([], np.uint16), (0,), 4, True),
}


@pytest.mark.parametrize(("words", "steps", "length", "expected"), BITS.values(), ids=BITS)
def test_bits_are_counted_by_a_program(words, steps, length, expected):
    facts = (Monotone("P"), BitCounts("W", "P", index(length)))
    arrays = {"W": words, "P": offsets(*steps)}
    checked, programs = is_found_to_hold(facts, **arrays)
    assert checked == holds(facts, **arrays) == expected
    assert len(programs) == 1
