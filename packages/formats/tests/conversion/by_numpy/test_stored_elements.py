"""The elements of storages: their coordinates and their values, in every format."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import Storage, from_scipy
from gossamer_formats.conversion.by_numpy.stored_elements import (
    select_elements,
    sorted_elements,
    stored_elements,
)
from gossamer_formats.descriptions.coo import coo

DENSE = np.zeros((5, 7))
DENSE[0, [1, 6]] = 1, 2
DENSE[3] = [3, 4, 5, 6, 7, 8, 9]
DENSE[4, 0] = 10
FORMATS = {
    "csr": {}, "csc": {}, "coo": {}, "dcsr": {}, "ell": {"width": 8}, "dia": {}, "csf": {},
    "bsr": {"block_rows": 2, "block_columns": 3}, "sell": {"height": 2, "sigma": 4}, "bitmask": {},
}  # fmt: skip


def elements_of(format, parameters):
    tensor = from_scipy(sparse.csr_array(DENSE)).asformat(format, **parameters)
    return tensor.storage, stored_elements(tensor.storage)


@pytest.mark.parametrize(("format", "parameters"), FORMATS.items(), ids=FORMATS)
def test_values_are_at_their_coordinates(format, parameters):
    storage, elements = elements_of(format, parameters)
    dense = np.zeros_like(DENSE)
    np.add.at(dense, elements.coordinates, storage.values[elements.value_indices])
    np.testing.assert_array_equal(dense, DENSE)


@pytest.mark.parametrize("format", ["ell", "dia", "sell"])
def test_unused_slots_and_slots_beyond_the_matrix_are_no_elements(format):
    storage, elements = elements_of(format, FORMATS[format])
    assert storage.values.size > elements.value_indices.size
    rows, columns = elements.coordinates
    assert ((rows >= 0) & (rows < 5) & (columns >= 0) & (columns < 7)).all()


def test_zeros_that_fill_blocks_are_elements():
    storage, elements = elements_of("bsr", FORMATS["bsr"])
    values = storage.values[elements.value_indices]
    assert (values == 0).sum() == values.size - np.count_nonzero(DENSE) > 0


def test_sorted_elements_keep_duplicates_in_their_order():
    description = coo("float64", sorted=False)
    rows, columns = np.array([1, 0, 1, 1]), np.array([2, 5, 2, 0])
    arrays = {"indices_0": rows, "indices_1": columns, "data": np.arange(1.0, 5.0)}
    storage = Storage(description, {"n0": 5, "n1": 7, "nnz": 4}, arrays)
    elements = sorted_elements(stored_elements(storage))
    assert elements.value_indices.tolist() == [1, 3, 0, 2]
    assert [each.tolist() for each in elements.coordinates] == [[0, 1, 1, 1], [5, 0, 2, 2]]
    chosen = select_elements(elements, np.array([2]))
    assert [each.tolist() for each in chosen.coordinates] == [[1], [2]]
