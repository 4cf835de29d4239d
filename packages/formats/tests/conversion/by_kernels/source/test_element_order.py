"""The order of elements that the declarations of formats state."""

from __future__ import annotations

import pytest

from gossamer_formats.conversion.by_kernels.source.element_order import (
    UNKNOWN,
    ElementOrder,
    NextDigit,
    ascends,
    can_ascend,
    declared_order,
    is_grouped_by,
    is_unordered_list,
    needs_order,
    without_repetitions,
)
from gossamer_formats.descriptions.bsr import bsr
from gossamer_formats.descriptions.coo import coo
from gossamer_formats.descriptions.csc import csc
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.descriptions.dia import dia

SIZES = (("m", 4), ("n", 6))


def order(*digits, are_distinct=True):
    """An order of digits: 0 and 1 for those of rows and columns that ascend, -1 for columns that do not."""
    return ElementOrder(
        tuple(NextDigit(abs(digit), ascends=digit >= 0) for digit in digits), are_distinct
    )


def order_of(description, layout=SIZES, **options):
    return declared_order(description, layout, description.buffer.axes, **options)


def test_rows_ascend_in_csr_and_columns_in_csc():
    by_rows, by_columns = order_of(csr()), order_of(csc())
    assert ascends(by_rows, (0, 1))
    assert not ascends(by_rows, (1, 0))
    assert ascends(by_columns, (1, 0))
    assert not ascends(by_columns, (0, 1))


def test_unsorted_rows_are_still_grouped():
    unsorted = order_of(csr(sorted=False))
    assert is_grouped_by(unsorted, (0,))
    assert not ascends(unsorted, (0, 1))
    assert can_ascend(unsorted, (0, 1))
    assert ascends(order_of(csr(sorted=False), are_sorted=True), (0, 1))


def test_repeated_coordinates_are_declared():
    assert order_of(csr()).are_distinct
    assert not order_of(csr(unique=False)).are_distinct


def test_rows_of_blocks_are_visited_once_for_each_block():
    layout = (*SIZES, ("block_rows", 2), ("block_columns", 3))
    by_blocks = order_of(bsr(), layout)
    assert [digit.dimension for digit in by_blocks.digits] == [0, 1, 0, 1]
    assert not ascends(by_blocks, (0, 1))
    assert ascends(by_blocks, (0,)), "elements of one column"
    whole_rows = order_of(bsr(), (*SIZES, ("block_rows", 1), ("block_columns", 3)))
    assert ascends(whole_rows, (0, 1))


def test_coordinates_that_are_no_digits_have_no_order():
    assert declared_order(dia(), (*SIZES, ("diagonals", 3)), dia().buffer.axes) == UNKNOWN
    assert not can_ascend(UNKNOWN, (0,))
    assert ascends(UNKNOWN, ())


@pytest.mark.parametrize(
    ("digits", "dimensions", "expected"),
    [
        ((0, 1), (0,), True),
        ((1, 0), (0,), False),
        ((0, 1, 0), (0,), False),
        ((0, 0, 1), (0,), True),
        ((-1, 0), (1,), False),
    ],
)
def test_elements_are_grouped_by_the_outermost_digits(digits, dimensions, expected):
    assert is_grouped_by(order(*digits), dimensions) == expected


def test_only_formats_that_say_so_need_an_order():
    assert needs_order(coo())
    assert not needs_order(coo(sorted=False))
    assert is_unordered_list(coo(sorted=False))
    assert not is_unordered_list(csr(sorted=False)), "rows are in order"


def test_equal_neighbors_are_one():
    assert without_repetitions([0, 0, 1, 0, 0]) == [0, 1, 0]
    assert without_repetitions([]) == []
