"""Facts become tests of buffers: offsets first, and none where a fact cannot be tested."""

import numpy as np
import pytest

from gossamer_backend.compiled_checks.buffer_checks import buffer_checks
from gossamer_ir.core.build import index
from gossamer_ir.nodes import (
    Distinct,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)

INT32, INT64 = np.dtype("int32"), np.dtype("int64")
OFFSETS = ("P", INT32, 1)
COLUMNS = ("Q", INT32, 1)
SEGMENTS = SortedSegments("Q", "P", unique=True)


def checks_of(*facts, layouts=(OFFSETS, COLUMNS), is_elsewhere=False):
    return buffer_checks(facts, layouts, is_elsewhere=is_elsewhere)


def test_offsets_are_tested_before_the_segments_that_they_cut():
    for layouts in ((OFFSETS, COLUMNS), (COLUMNS, OFFSETS)):
        offsets, columns = checks_of(SEGMENTS, Monotone("P"), layouts=layouts)
        assert (offsets.buffer, offsets.test.order, offsets.test.is_in_segments) == (
            "P",
            "sorted",
            False,
        )
        assert (columns.buffer, columns.test.order, columns.offsets) == ("Q", "unique", "P")
        assert columns.test.offsets == 0


def test_segments_need_offsets_that_are_tested():
    """Unchecked offsets could make the check itself read out of bounds."""
    assert checks_of(SEGMENTS) is None
    assert checks_of(SEGMENTS, InRange("P", index(0), index(9))) is None
    assert checks_of(SEGMENTS, Monotone("P")) is not None


def test_ends_of_offsets_are_tested_where_the_host_cannot_read_them():
    for is_elsewhere in (False, True):
        _, columns = checks_of(SEGMENTS, Monotone("P"), is_elsewhere=is_elsewhere)
        assert columns.test.tests_ends == is_elsewhere


def test_an_array_of_several_dimensions_is_sorted_in_rows():
    (check,) = checks_of(SortedSegments("Q", None, unique=False), layouts=(("Q", INT32, 2),))
    assert check.test.is_in_rows
    (check,) = checks_of(SortedSegments("Q", None, unique=False), layouts=(COLUMNS,))
    assert not check.test.is_in_rows


def test_each_fact_about_values_has_its_test():
    facts = (InRange("Q", index(0), index(9)), HasValue("Q", index(0), index(1)), Distinct("Q"))
    (check,) = checks_of(*facts, layouts=(COLUMNS,))
    assert (check.test.is_in_range, check.test.values, check.test.distinct) == (True, 1, "sorted")
    assert (check.ranges, check.values) == (facts[:1], facts[1:2])


@pytest.mark.parametrize(
    ("facts", "is_padded"),
    [
        ((SortedSegments("Q", None, unique=True),), True),
        ((SortedSegments("Q", None, unique=False),), False),
        ((Distinct("Q"),), True),
        ((InRange("Q", index(0), index(9)),), False),
    ],
)
def test_padding_matters_where_values_must_differ(facts, is_padded):
    (check,) = checks_of(*facts, PaddedSlots("Q", index(7)), layouts=(COLUMNS,))
    assert check.test.is_padded == is_padded


RELATED = (
    Monotone("P"),
    SEGMENTS,
    SortedSegments("R", "P", unique=True),
    Relation("subset", "Q", "R"),
)
WITH_OTHER = (OFFSETS, COLUMNS, ("R", INT32, 1))


def test_a_relation_names_the_number_of_the_other_check():
    checks = checks_of(*RELATED, layouts=WITH_OTHER)
    numbers = {check.buffer: number for number, check in enumerate(checks)}
    assert checks[numbers["Q"]].test.related == (("subset", numbers["R"]),)
    assert checks[numbers["R"]].test.related == ()


UNTESTABLE = {
    "two orders": ((Monotone("Q"), SortedSegments("Q", None, unique=True)), (COLUMNS,)),
    "floats": ((InRange("Q", index(0), index(9)),), (("Q", np.dtype("float32"), 1),)),
    "a relation with uint64": (RELATED, (OFFSETS, COLUMNS, ("R", np.dtype("uint64"), 1))),
    "a relation without an order": (
        (Monotone("P"), SEGMENTS, Relation("subset", "Q", "R"), InRange("R", index(0), index(9))),
        WITH_OTHER,
    ),
    "a relation that is not of sets": (
        (*RELATED[:3], Relation("covers", "Q", "R")),
        WITH_OTHER,
    ),
    "products of an array without a check": (
        (ProductSteps("P", "P", "R"), Monotone("P")),
        (OFFSETS,),
    ),
}


@pytest.mark.parametrize(("facts", "layouts"), UNTESTABLE.values(), ids=UNTESTABLE)
def test_what_cannot_be_tested_is_left_to_numpy(facts, layouts):
    assert checks_of(*facts, layouts=layouts) is None


def test_products_name_the_checks_of_their_factors():
    layouts = (("P", INT64, 1), ("R", INT64, 1), ("S", INT64, 1))
    facts = (Monotone("P"), Monotone("R"), Monotone("S"), ProductSteps("S", "P", "R"))
    checks = checks_of(*facts, layouts=layouts)
    assert [check.test.products for check in checks] == [None, None, (0, 1)]
