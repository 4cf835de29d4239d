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
    Distinct,
    HasValue,
    InRange,
    Load,
    Monotone,
    PaddedSlots,
    ProductSteps,
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
    """Whether NumPy finds no violation."""
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
    found, programs = is_found_to_hold(SEGMENTS, P=indptr, X=indices)
    assert found == holds(SEGMENTS, P=indptr, X=indices) == expected
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
    found, programs = is_found_to_hold(facts, X=values)
    assert found == holds(facts, X=values) == expected
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
    found, programs = is_found_to_hold(facts, X=array, L=left, R=right)
    assert found == expected
    assert found <= holds(facts, X=array, L=left, R=right)
    assert len(programs) == 1


UNKNOWN = {
    "distinct values in any range": (Distinct("X"),),
    "distinct values in a range that is too large for a list": (
        Distinct("X"),
        InRange("X", index(0), index(33)),
    ),
    "products of an array that has no fact": (ProductSteps("X", "P", "X"), Monotone("X")),
    "a bound in an array": (InRange("X", index(0), Load("X", (index(0),), "int32")),),
}


@pytest.mark.parametrize("facts", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_would_have_to_be_read_is_left_to_others(facts):
    arrays = {"X": offsets(0, 1, 2, 3), "P": offsets(0, 1, 2, 3)}
    assert not is_found_to_hold(facts, **arrays)[0]
