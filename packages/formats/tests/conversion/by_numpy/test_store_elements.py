"""Elements that NumPy stores: duplicates and zeros, as the options say."""

from __future__ import annotations

import numpy as np
import pytest
from format_conversions import with_duplicates

from gossamer_formats import convert, from_arrays, require_valid_storage
from gossamer_ir.errors import FormatError


@pytest.mark.usefixtures("converted_by")
def test_duplicates_are_added():
    tensor, permutation = convert(with_duplicates(), "coo")
    assert tensor.arrays["data"].tolist() == [4.0, 3.0, 8.0]
    assert permutation is None


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "dcsr", "ell", "padded_csr", "sell", "csf"])
@pytest.mark.usefixtures("converted_by")
def test_duplicates_are_kept(name):
    tensor, permutation = convert(with_duplicates(), name, duplicates="keep", zeros="keep")
    assert sorted(tensor.arrays["data"][permutation >= 0]) == [1.0, 2.0, 4.0, 8.0]
    require_valid_storage(tensor.storage)
    np.testing.assert_array_equal(tensor.toarray(), [[4, 3, 0], [0, 0, 8]])


def test_sums_of_duplicates_that_are_zero_are_dropped_with_the_zeros():
    rows, values = np.array([0, 0, 1]), np.array([2.0, -2.0, 5.0])
    tensor = from_arrays("coo", (2, 2), data=values, indices_0=rows, indices_1=rows)
    assert tensor.asformat("csr").arrays["data"].tolist() == [0.0, 5.0]
    assert tensor.asformat("csr", zeros="drop").arrays["data"].tolist() == [5.0]


@pytest.mark.parametrize(("name", "policy"), [("coo", "error"), ("dia", "keep")])
@pytest.mark.usefixtures("converted_by")
def test_duplicates_are_refused(name, policy):
    with pytest.raises(FormatError) as caught:
        convert(with_duplicates(), name, duplicates=policy)
    assert caught.value.code == "format.duplicate"


@pytest.mark.usefixtures("converted_by")
def test_zeros_are_kept_where_they_are_elements():
    arrays = {"indptr": np.array([0, 2]), "indices": np.array([0, 1])}
    tensor = from_arrays("csr", (1, 2), data=np.array([0.0, 3.0]), **arrays)
    assert tensor.asformat("coo").nnz == 2
    assert tensor.asformat("coo", zeros="drop").nnz == 1
    blocks = tensor.asformat("bsr", block_rows=2, block_columns=2)
    assert blocks.asformat("coo").nnz == 1
    # The second row of the block is beyond the shape.
    assert blocks.asformat("coo", zeros="keep").nnz == 2
