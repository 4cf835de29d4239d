"""The program that checks index arrays: interpreted, and compared with a slow oracle."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_backend.arguments.size_equations import evaluate_size
from gossamer_backend.compiled_checks.array_test import ArrayTest
from gossamer_backend.compiled_checks.check_program import program_of_checks
from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import For, Var
from gossamer_ir.traversal.walk import collect

OFFSETS = ArrayTest("int32", order="sorted")


def passes(tests, *arrays, **values):
    sizes = {f"n{number}": len(array) for number, array in enumerate(arrays)}
    named = {
        f"x{number}": np.array(array, test.dtype)
        for number, (test, array) in enumerate(zip(tests, arrays, strict=True))
    }
    try:
        run(program_of_checks(tests), {**named, **sizes, **values})
    except GuardFailed:
        return False
    return True


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], True), ([2, 5], True), ([1, 4], False), ([4, 6], False), ([-9], False)],
)
def test_a_range(values, expected):
    tests = (ArrayTest("int32", is_in_range=True),)
    assert passes(tests, values, low0=2, last0=5) == expected


def parts_of_chunk(test, *, count, chunk):
    """The number of full vectors of a chunk, and that of the elements after them."""
    body, sizes = program_of_checks((test,)).functions[0].body, {"c": chunk, "n0": count}
    full, *_ = (loop.extent for loop in collect(For, *body) if loop.var == "t")
    [rest] = (
        loop.extent for loop in collect(For, *body) if loop.var[0] == "l" and loop.kind == "serial"
    )
    vectors = evaluate_size(full, sizes, arrays={})
    after = {var.name: vectors for var in collect(Var, rest) if var.name.startswith("t")}
    return vectors, evaluate_size(rest, {**sizes, **after}, arrays={})


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, (0, 1)), (32, (1, 0)), (33, (1, 1)), (4096, (128, 0)), (9000, (128, 0))],
)
def test_a_chunk_has_the_vectors_that_the_array_fills_and_the_elements_left(count, expected):
    assert parts_of_chunk(ArrayTest("int32", is_in_range=True), count=count, chunk=0) == expected


def test_an_order_is_tested_for_all_elements_but_the_last():
    assert parts_of_chunk(OFFSETS, count=2 * 4096 + 40, chunk=2) == (1, 7)


@pytest.mark.parametrize("size", [1, 31, 4095, 4096, 4097, 8192, 8200])
@pytest.mark.parametrize("place", [0, -1])
def test_a_wrong_value_is_found_in_any_vector(size, place):
    values = np.zeros(size, np.int32)
    tests = (ArrayTest("int32", is_in_range=True),)
    assert passes(tests, values, low0=0, last0=5)
    values[place] = 6
    assert not passes(tests, values, low0=0, last0=5)


@pytest.mark.parametrize(
    ("order", "values", "expected"),
    [
        ("sorted", [1, 1, 2], True),
        ("unique", [1, 1, 2], False),
        ("sorted", [1, 2, 1], False),
        ("unique", [7], True),
        ("sorted", [], True),
    ],
)
def test_an_order(order, values, expected):
    assert passes((ArrayTest("int64", order=order),), values) == expected


@pytest.mark.parametrize(
    ("indptr", "indices", "expected"),
    [
        ([0, 2, 4], [0, 3, 1, 2], True),
        ([0, 2, 2, 4], [0, 3, 1, 2], True),
        ([0, 0, 3, 4, 4], [0, 3, 1, 2], False),
        ([0, 1, 4], [0, 3, 3, 4], False),
        ([0, 0], [], True),
        ([0], [], True),
    ],
)
def test_an_order_within_segments(indptr, indices, expected):
    tests = (OFFSETS, ArrayTest("int32", order="unique", offsets=0))
    assert passes(tests, indptr, indices) == expected


@pytest.mark.parametrize(("pad", "expected"), [(9, True), (8, False)])
def test_pads_may_repeat_within_rows(pad, expected):
    tests = (ArrayTest("int32", order="unique", is_in_rows=True, is_padded=True),)
    assert passes(tests, [0, 9, 9, 1, 2, 9], width0=3, pad0=pad) == expected


def test_a_test_of_nothing_passes():
    assert passes((ArrayTest("int32"),), [3, 2])


def test_modules_survive_the_wire():
    tests = (
        OFFSETS,
        ArrayTest("uint16", is_in_range=True, order="unique", offsets=0, is_padded=True),
    )
    assert loads(dumps(program_of_checks(tests))) == program_of_checks(tests)
