"""Rows of matrices in all formats are selected in their order, as those of dense arrays."""

import numpy as np
import pytest

from gossamer_formats import SparseTensor
from gossamer_ir.errors import ArgumentError

ROWS = {
    "slice": slice(2, 8, 3),
    "reversed": slice(None, None, -1),
    "none": slice(0, 0),
    "numbers": [3, 0, 3, -1],
    "array": np.array([8, 1], np.int32),
    "empty": [],
    "mask": np.arange(9) % 2 == 0,
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_selected_in_their_order(tensor, name, matrix):
    selected = tensor[ROWS[name]]
    assert selected.format == "csr"
    expected = matrix.toarray()[np.array([], int) if name == "empty" else ROWS[name]]
    np.testing.assert_array_equal(selected.toarray(), expected)


@pytest.mark.parametrize("rows", [0, (0, 1), [9], [-10], ["a"], [0.5], np.ones(3, bool)], ids=str)
def test_other_indices_are_refused(rows, matrix):
    with pytest.raises(ArgumentError) as raised:
        SparseTensor(matrix)[rows]
    assert raised.value.code == "tensor.rows"
