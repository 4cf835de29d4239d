"""Checks that values are distinct: small ranges are marked, large ones sorted."""

import numpy as np
import pytest
from device_checks import holds, is_found_to_hold, offsets

from gossamer_ir.core.build import index, index_var
from gossamer_ir.nodes import Distinct, InRange, PaddedSlots

DISTINCT = {
    "a permutation": (offsets(3, 0, 2, 1), True),
    "all values of the range": (offsets(8, 0, 4, 2), True),
    "a value twice": (offsets(3, 0, 3, 1), False),
    "a value too large": (offsets(3, 0, 9, 1), False),
    "a negative value": (offsets(3, 0, -1, 1), False),
}


@pytest.mark.parametrize(("values", "expected"), DISTINCT.values(), ids=DISTINCT.keys())
def test_distinct_values_are_marked_in_a_list_of_the_range(values, expected):
    facts = (InRange("X", index(0), index(9)), Distinct("X"))
    result, programs = is_found_to_hold(facts, X=values)
    assert result == holds(facts, X=values) == expected
    assert len(programs) == 1


def test_distinct_values_may_be_padded():
    facts = (
        InRange("X", index(0), index(9)),
        Distinct("X"),
        PaddedSlots("X", index_var("n")),
    )
    assert is_found_to_hold(facts, X=offsets(4, 0, 4, 1))[0]
    assert not is_found_to_hold(facts, X=offsets(4, 1, 4, 1))[0]


WIDE = {
    "int8": (np.array([-128, 127, 0, -1], np.int8), True),
    "int8 twice": (np.array([-128, 127, 0, -128], np.int8), False),
    "int16": (np.array([-300, 300, -301, 301], np.int16), True),
    "int32": (np.array([1 << 30, -(1 << 30), 5, 1 << 8], np.int32), True),
    "int32 twice": (np.array([1 << 30, 7, 5, 1 << 30], np.int32), False),
    "int64": (np.array([1 << 62, -(1 << 62), 1 << 62 | 1, 0], np.int64), True),
    "int64 twice": (np.array([-(1 << 62), 1 << 40, 0, -(1 << 62)], np.int64), False),
    "uint64": (np.array([2**64 - 1, 2**63, 1, 0], np.uint64), True),
    "uint64 twice": (np.array([2**64 - 1, 2**63, 1, 2**64 - 1], np.uint64), False),
    "no values": (np.array([], np.int32), True),
    "one value": (np.array([-5], np.int32), True),
}


@pytest.mark.parametrize(("values", "expected"), WIDE.values(), ids=WIDE)
def test_distinct_values_of_a_large_range_are_sorted(values, expected):
    facts = (Distinct("X"),)
    checked, programs = is_found_to_hold(facts, X=values)
    assert checked == holds(facts, X=values) == expected
    assert len(programs) == 1


@pytest.mark.parametrize("other", [4, -(1 << 30)])
def test_padding_is_not_sorted(other):
    facts = (Distinct("X"), PaddedSlots("X", index_var("n")))
    values = offsets(4, 1 << 30, 4, other, -(1 << 30), 4)
    assert is_found_to_hold(facts, X=values)[0] == holds(facts, X=values) == (other == 4)
