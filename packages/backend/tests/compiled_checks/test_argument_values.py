"""Arguments of generated checks: arrays on a device are read by programs, and by nothing else."""

import pytest
from device_checks import holds, is_found_to_hold, offsets, segments

from gossamer_ir.core.build import index, index_var
from gossamer_ir.nodes import (
    BitCounts,
    HasValue,
    InRange,
    Load,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)

SEGMENTS = (
    Monotone("P"),
    HasValue("P", index(0), index(0)),
    HasValue("P", index(2), index_var("n")),
    InRange("X", index(0), index(9)),
    SortedSegments("X", "P", unique=True),
)
CASES = {
    "all hold": (offsets(0, 2, 4), offsets(0, 3, 1, 2), True),
    "a decrease between segments": (offsets(0, 3, 4), offsets(0, 3, 4, 2), True),
    "an unsorted segment": (offsets(0, 2, 4), offsets(3, 0, 1, 2), False),
    "a repeated value": (offsets(0, 2, 4), offsets(3, 3, 1, 2), False),
    "a value too large": (offsets(0, 2, 4), offsets(0, 9, 1, 2), False),
    "another beginning": (offsets(1, 2, 4), offsets(0, 3, 1, 2), False),
    "another end": (offsets(0, 2, 3), offsets(0, 3, 1, 2), False),
    "a decreasing offset": (offsets(0, 5, 4), offsets(0, 3, 4, 5), False),
}


@pytest.mark.parametrize(("indptr", "indices", "expected"), CASES.values(), ids=CASES.keys())
def test_a_program_finds_what_numpy_finds(indptr, indices, expected):
    result, programs = is_found_to_hold(SEGMENTS, P=indptr, X=indices)
    assert result == holds(SEGMENTS, P=indptr, X=indices) == expected
    assert len(programs) == 1


@pytest.mark.parametrize("end", [3, 5])
def test_offsets_that_do_not_end_at_the_last_element_are_found_without_a_fact(end):
    facts = (Monotone("P"), SortedSegments("X", "P", unique=False))
    assert is_found_to_hold(facts, P=offsets(0, 2, 4), X=offsets(0, 3, 1, 2))[0]
    assert not is_found_to_hold(facts, P=offsets(0, 2, end), X=offsets(0, 3, 1, 2))[0]


def test_padding_may_be_repeated():
    facts = (SortedSegments("X", None, True), PaddedSlots("X", index_var("n")))
    assert is_found_to_hold(facts, X=offsets(0, 3, 4, 4))[0]
    assert not is_found_to_hold(facts, X=offsets(0, 3, 3, 4))[0]


UNKNOWN = {
    "sets that are covered": (*segments(("P", "X")), Relation("covers", "X", "X")),
    "sets that are not sorted": (Monotone("X"), Monotone("P"), Relation("subset", "X", "P")),
    "bits without offsets that are checked": (BitCounts("X", "P", index(4)),),
    "products of an array that has no fact": (ProductSteps("X", "P", "X"), Monotone("X")),
    "a bound in an array": (InRange("X", index(0), Load("X", (index(0),), "int32")),),
}


@pytest.mark.parametrize("facts", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_facts_about_values_in_arrays_are_left_to_other_checks(facts):
    arrays = {"X": offsets(0, 1, 2, 3), "P": offsets(0, 1, 2, 3)}
    assert not is_found_to_hold(facts, **arrays)[0]
