"""Axes that NumPy builds: slots of padded rows, and elements that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import from_scipy
from gossamer_ir.errors import FormatError


@pytest.mark.usefixtures("converted_by")
def test_rows_of_sell_are_sorted_by_length_in_windows():
    matrix = sparse.csr_array(np.array([[1, 0], [1, 1], [0, 0], [1, 1], [1, 0]], np.float32))
    arrays = from_scipy(matrix).asformat("sell", height=2, sigma=4).arrays
    assert arrays["rows"].tolist() == [1, 3, 0, 2, 4, 5]
    assert arrays["indptr"].tolist() == [0, 2, 3, 4]


@pytest.mark.usefixtures("converted_by")
def test_more_elements_than_slots_are_refused_by_row_and_columns():
    matrix = sparse.csr_array(np.array([[1, 0, 0, 0], [1, 1, 0, 1]], np.float32))
    with pytest.raises(FormatError, match=r"3 elements: \(1, 0\), \(1, 1\), \(1, 3\)") as caught:
        from_scipy(matrix).asformat("n_m")
    assert caught.value.code == "format.width"


@pytest.mark.usefixtures("converted_by")
@pytest.mark.parametrize(
    ("sizes", "code", "words"),
    [
        ({"m": 2, "n": 4}, "format.shape", r"shape \(2, 4\) with these sizes; expected \(3, 5\)"),
        ({"m": 9}, "format.shape", r"shape \(9, 5\)"),
        (
            {"nnz": 2},
            "format.parameter.value",
            "axis 'I' of the format 'csc' has 3 slots, but .* 2",
        ),
    ],
)
def test_sizes_that_contradict_the_matrix_are_refused(sizes, code, words):
    matrix = sparse.csr_array(np.array([[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0, 0, 1, 0]]) * 1.0)
    with pytest.raises(FormatError, match=words) as caught:
        from_scipy(matrix).asformat("csc", **sizes)
    assert caught.value.code == code
