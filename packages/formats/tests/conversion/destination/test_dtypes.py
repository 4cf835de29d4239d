"""Dtypes of the index arrays of converted tensors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import from_arrays, from_scipy
from gossamer_ir.errors import FormatError


@pytest.mark.usefixtures("converted_by")
def test_indices_have_the_dtype_that_is_asked_for():
    tensor = from_scipy(sparse.eye_array(3))
    assert tensor.asformat("csc").arrays["indices"].dtype == np.int32
    assert tensor.asformat("csc", index_dtype="int64").arrays["indices"].dtype == np.int64
    large = from_arrays(
        "coo", (1, 2**40), indices_0=np.zeros(1, int), indices_1=np.array([2**35]), data=np.ones(1)
    )
    assert large.asformat("csr").arrays["indices"].dtype == np.int64


@pytest.mark.usefixtures("converted_by")
def test_an_index_that_its_dtype_cannot_represent_is_refused():
    tensor = from_scipy(sparse.eye_array(600))
    assert tensor.asformat("n_m", group=255).arrays["indices"].max() == 255
    for parameters in ({"group": 256}, {"group": 300, "slots": 1}):
        with pytest.raises(FormatError, match="uint8 cannot represent") as caught:
            tensor.asformat("n_m", **parameters)
        assert caught.value.code == "format.index_dtype"
    wide = from_arrays(
        "coo", (1, 2**40), indices_0=np.zeros(1, int), indices_1=np.array([2**35]), data=np.ones(1)
    )
    with pytest.raises(FormatError, match="int32 cannot represent"):
        wide.asformat("csr", index_dtype="int32")


@pytest.mark.usefixtures("converted_by")
def test_negative_indices_are_as_wide_as_they_need():
    arrays = {"indices_0": np.array([2999999999]), "indices_1": np.zeros(1, int)}
    tensor = from_arrays("coo", (3 * 10**9, 2), data=np.ones(1), **arrays)
    diagonals = tensor.asformat("dia")
    assert diagonals.arrays["offsets"].tolist() == [-2999999999]
    assert diagonals.asformat("coo").arrays["indices_0"].tolist() == [2999999999]
    with pytest.raises(FormatError, match="int32 cannot represent"):
        tensor.asformat("dia", index_dtype="int32")
