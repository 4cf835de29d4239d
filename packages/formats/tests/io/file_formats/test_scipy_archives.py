"""Archives of SciPy, and files that only look like them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import read
from gossamer_ir.errors import FormatError


def test_an_npz_of_float32_keeps_its_dtype_and_an_empty_one_is_read(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.csc_array((0, 5), dtype=np.float32))
    tensor = read(tmp_path / "a.npz")
    assert (tensor.shape, tensor.dtype) == ((0, 5), "float32")


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.ones(3)},
        {"format": np.array(b"csr"), "shape": np.array([2, 2])},
        {"format": np.array(b"xyz"), "shape": np.array([2, 2]), "data": np.ones(1)},
        {"format": np.array(7), "shape": np.array([2, 2]), "data": np.ones(1)},
        {"format": np.array({"an": "object"}, dtype=object), "shape": np.array([2, 2])},
        {
            "format": np.array(b"csr"),
            "shape": np.array([2, 2]),
            "data": np.ones(3),
            "indices": np.zeros(1, np.int32),
            "indptr": np.zeros(7, np.int32),
        },
        {
            "format": np.array(b"bsr"),
            "shape": np.array([2, 2]),
            "data": np.ones((2, 0, 0)),
            "indices": np.array([0, 1], np.int32),
            "indptr": np.array([0, 1, 2], np.int32),
        },
        {
            "format": np.array(b"csr"),
            "shape": np.array([2, 2]),
            "data": np.ones(2),
            "indices": np.array([0.0, 1.5]),
            "indptr": np.array([0, 1, 2], np.int32),
        },
    ],
)
def test_an_npz_that_holds_something_else_is_refused(arrays, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert caught.value.code == "format.read.malformed"
    assert "\n" not in str(caught.value)


def test_an_npz_of_three_dimensions_is_read_as_coordinates(tmp_path):
    dense = np.zeros((2, 3, 4))
    dense[1, 2, 3] = 5.0
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(dense))
    try:
        sparse.load_npz(tmp_path / "a.npz")
    except ValueError:
        pytest.skip("this SciPy does not store arrays of three dimensions")
    tensor = read(tmp_path / "a.npz")
    assert tensor.format == "coo"
    np.testing.assert_array_equal(tensor.toarray(), dense)


def test_a_truncated_npz_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.eye_array(100))
    whole = path.read_bytes()
    for cut in (10, 100, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(FormatError):
            read(path)


def test_an_npz_with_columns_out_of_range_names_the_first(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(
        path,
        format=np.array(b"csr"),
        shape=np.array([2, 2]),
        data=np.ones(2),
        indices=np.array([0, 9], np.int32),
        indptr=np.array([0, 1, 2], np.int32),
    )
    with pytest.raises(FormatError, match=r"In '.*a\.npz': Element 1 of 'indices' is 9"):
        read(path)
