"""Destinations of conversions: sizes, and orders of rows."""

from __future__ import annotations

import numpy as np
import pytest
from format_conversions import with_duplicates
from msgspec.structs import replace
from scipy import sparse

from gossamer_formats import convert, format_named, from_scipy
from gossamer_formats.conversion.convert_storage import convert_storage
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_ir.errors import FormatError


def test_sizes_may_be_integers_of_numpy():
    converted = with_duplicates().asformat("bsr", block_rows=np.int64(2), block_columns=np.int32(1))
    assert type(converted.sizes["block_rows"]) is int
    np.testing.assert_array_equal(converted.toarray(), with_duplicates().toarray())


ORDERED = {
    "an array that is none": ("rows", lambda counts, _: np.arange(counts.size)),
    "contents without a bound": ("OFFSETS", lambda counts, _: counts),
    "contents that are left out": ("ROWS", lambda counts, _: np.arange(1)),
    "contents that are there twice": (
        "ROWS",
        lambda counts, _: np.arange(2 * counts.size) % counts.size,
    ),
}


@pytest.mark.parametrize("name", ["row_groups", "sell"])
@pytest.mark.parametrize("height", [1, 2, 3])
@pytest.mark.usefixtures("converted_by")
def test_rows_are_stored_in_the_order_that_is_given(name, height):
    dense = np.arange(15.0).reshape(5, 3) % 4
    tensor = convert(from_scipy(sparse.csr_array(dense)), name, height=height, order=ORDER).tensor
    assert tensor.arrays["rows"][:5].tolist() == ORDER.tolist()
    assert np.array_equal(tensor.toarray(), dense)


ORDER = np.array([3, 0, 4, 2, 1])
NO_ORDERS = {
    "too few": ("sell", ORDER[:4], "4 values is not a permutation of the numbers from 0 to 4"),
    "one twice": ("row_groups", np.array([3, 0, 4, 2, 3]), "is not a permutation"),
    "one too large": ("row_groups", ORDER + 1, "is not a permutation"),
    "negative numbers": ("row_groups", ORDER - 1, "is not a permutation"),
    "numbers that are none": ("row_groups", ORDER / 2, "1 dimension of float64"),
    "several dimensions": ("row_groups", ORDER[None], "2 dimensions of int64"),
    "a format without an order": ("csr", ORDER, "has 0 index arrays; only a format with one"),
}


@pytest.mark.parametrize(("name", "order", "text"), NO_ORDERS.values(), ids=NO_ORDERS)
def test_rows_that_are_no_order_are_refused(name, order, text):
    tensor = from_scipy(sparse.csr_array(np.ones((5, 3))))
    with pytest.raises(FormatError, match=text) as caught:
        tensor.asformat(name, order=order)
    assert caught.value.code == "format.order"


@pytest.mark.parametrize(("buffer", "order"), ORDERED.values(), ids=ORDERED)
@pytest.mark.usefixtures("converted_by")
def test_orders_that_are_none_are_refused(buffer, order):
    name = "dia" if buffer == "OFFSETS" else "sell"
    destination = Destination(format_named(name).describe(), {"height": 2}, {buffer: order})
    tensor = from_scipy(sparse.eye_array(3))
    sizes = {} if name == "dia" else {"height": 2}
    with pytest.raises(FormatError) as caught:
        convert_storage(tensor.storage, replace(destination, parameters=sizes, memo={}))
    assert caught.value.code == "format.order"
