"""The generated check of arrays on a device: programs read them, and nothing else does."""

import numpy as np
import pytest
from array_exporters import Exporter

from gossamer_backend import GeneratedCheck
from gossamer_backend.arguments.view_of import view_of
from gossamer_ir.core.build import index, index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.facts.fact_violations import FactOperands, first_violation
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import (
    BitCounts,
    Distinct,
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


class KernelElsewhere:
    """A kernel on arrays that only it can read: those that exporters have."""

    def __init__(self, module):
        self.module = module

    def run_trusted(self, *args):
        names = [param.name for param in self.module.functions[0].params]
        values = [value.array if isinstance(value, Exporter) else value for value in args]
        try:
            run(self.module, dict(zip(names, values, strict=True)))
        except GuardFailed as error:
            raise ArgumentError("kernel.out_of_bounds", f"'{error.buffer}'") from None


def is_found_to_hold(facts, **arrays):
    programs = []

    def compile(name, program):
        programs.append(name)
        return KernelElsewhere(program())

    views = {
        name: view_of(Exporter(array, device=(2, 0)), name=name) for name, array in arrays.items()
    }
    return GeneratedCheck(compile)(facts, {"n": 4}, views), programs


def holds(facts, **arrays):
    """Return whether NumPy finds no violation."""
    sizes = {"n": 4}

    def size(expr):
        return sizes[expr.name] if hasattr(expr, "name") else int(expr.text)

    names = {name: name for name in arrays}
    return first_violation(facts, FactOperands(arrays, names, size)) is None


def offsets(*values):
    return np.array(values, np.int32)


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


def segments(*names):
    facts = []
    for offsets_name, name in names:
        facts += [Monotone(offsets_name), SortedSegments(name, offsets_name, unique=True)]
    return facts


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


UNKNOWN = {
    "sets that are covered": (*segments(("P", "X")), Relation("covers", "X", "X")),
    "sets that are not sorted": (Monotone("X"), Monotone("P"), Relation("subset", "X", "P")),
    "bits without offsets that are checked": (BitCounts("X", "P", index(4)),),
    "products of an array that has no fact": (ProductSteps("X", "P", "X"), Monotone("X")),
    "a bound in an array": (InRange("X", index(0), Load("X", (index(0),), "int32")),),
}


@pytest.mark.parametrize("facts", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_would_have_to_be_read_is_left_to_others(facts):
    arrays = {"X": offsets(0, 1, 2, 3), "P": offsets(0, 1, 2, 3)}
    assert not is_found_to_hold(facts, **arrays)[0]
