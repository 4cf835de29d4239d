"""A kernel finds out whether elements are sorted and distinct, in vectors if they are a list."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_kernel import InterpretedKernel

from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SharedArguments
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import recorded_source
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.conversion.by_kernels.source.element_loop import element_loop
from gossamer_formats.conversion.by_kernels.source.element_order import (
    UNKNOWN,
    NextDigit,
    order_of_loop,
)
from gossamer_formats.conversion.by_kernels.source.observed_order import observed_order
from gossamer_formats.descriptions.coo import coo
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.storage import Storage
from gossamer_machine.machine import Machine

MACHINE = Machine(min_vector_bits=256)

LANES = 8
"""The number of pairs of elements that this machine compares at once."""

BY_ROW = (NextDigit(0, ascends=True), NextDigit(1, ascends=True))
"""The digits of an order by rows, and by columns within rows."""


def coordinates(rows, columns):
    """A matrix of 9 rows and columns in COO, which may be repeated and in any order."""
    arrays = {
        "indices_0": np.array(rows, np.int32),
        "indices_1": np.array(columns, np.int32),
        "data": np.ones(len(rows)),
    }
    sizes = {"n0": 9, "n1": 9, "nnz": len(rows)}
    return Storage(coo("float64", sorted=False), sizes, arrays)


def order_of(storage, *, drops_zeros=False):
    """The order that a kernel finds."""
    recorder = Recorder(InterpretedKernel, list(storage.arrays.values()))
    source = recorded_source(recorder, storage)
    loop = element_loop(SharedArguments(recorder), source, drops_zeros=drops_zeros)
    return observed_order(order_of_loop(loop, source), loop, MACHINE)


@pytest.mark.parametrize(
    "count",
    [0, 1, 2, LANES, LANES + 1, LANES + 2, 2 * LANES + 1, 50],
)
def test_a_sorted_list_of_any_length_is_recognized(count):
    order = order_of(coordinates(*np.divmod(np.arange(count), 9)))
    assert (order.digits, order.are_distinct) == (BY_ROW, True)


@pytest.mark.parametrize("drops_zeros", [False, True], ids=["in vectors", "in turn"])
@pytest.mark.parametrize("at", [1, 2, LANES - 1, LANES, LANES + 1, 2 * LANES, 39])
@pytest.mark.parametrize("step", [0, 3], ids=["repeated", "descending"])
def test_one_element_that_does_not_follow_the_one_before_is_found(at, step, drops_zeros):
    numbers = np.arange(5, 45)
    numbers[at:] -= 1 + step
    assert order_of(coordinates(*np.divmod(numbers, 9)), drops_zeros=drops_zeros) == UNKNOWN


def test_elements_in_several_loops_are_compared_in_turn():
    arrays = {
        "indptr": np.array([0, 2, 2, 3], np.int32),
        "indices": np.array([1, 4, 0], np.int32),
        "data": np.ones(3),
    }
    matrix = Storage(csr("float64", sorted=False), {"m": 3, "n": 5, "nnz": 3}, arrays)
    assert order_of(matrix).digits == BY_ROW
    arrays["indices"][1] = 1
    assert order_of(matrix) == UNKNOWN
