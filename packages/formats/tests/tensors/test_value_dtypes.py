"""Tensors with values of 16 and 8 bits: conversions between formats and dtypes, and what cannot hold them."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import csr, decompose, from_arrays, from_scipy, prune, read, to_scipy, write
from gossamer_formats.descriptions.coo import coo
from gossamer_ir.core.bfloat16 import decode_bfloat16, encode_bfloat16, round_bfloat16
from gossamer_ir.errors import FormatError

NARROW = ("float16", "bfloat16", "int8")
STORED = {"float16": "float16", "bfloat16": "uint16", "int8": "int8"}
FORMATS = {
    "csc": {}, "coo": {}, "dcsr": {}, "ell": {}, "sell": {}, "dia": {}, "csf": {}, "padded_csr": {},
    "bitmask": {}, "bsr": {"block_rows": 2, "block_columns": 3},
}  # fmt: skip


def integers(rows=9, columns=12):
    rng = np.random.default_rng(3)
    return rng.integers(-9, 10, (rows, columns)) * (rng.random((rows, columns)) < 0.4)


def tensor_of(dense, dtype):
    return from_scipy(sparse.csr_array(dense.astype(np.float64)), dtype=dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("format", FORMATS)
def test_a_format_keeps_the_dtype_and_the_values(format, dtype):
    dense = integers()
    tensor = tensor_of(dense, dtype).asformat(format, **FORMATS[format])
    assert tensor.value_dtype == dtype
    assert tensor.dtype == tensor.storage.values.dtype == STORED[dtype]
    np.testing.assert_array_equal(tensor.toarray(), dense)
    back = tensor.tocsr()
    assert back.value_dtype == dtype
    np.testing.assert_array_equal(back.toarray(), dense)


@pytest.mark.parametrize("dtype", NARROW)
def test_what_is_made_of_a_tensor_has_its_dtype(dtype):
    dense = integers()
    tensor = tensor_of(dense, dtype)
    for made in (tensor.T.T, prune(tensor, "csr", density=1.0), pickle.loads(pickle.dumps(tensor))):
        assert made.value_dtype == dtype
        np.testing.assert_array_equal(made.toarray(), dense)
    assert f", {dtype}, " in repr(tensor)


def duplicates_of(values, dtype):
    arrays = {"indices_0": np.zeros(3, np.int32), "indices_1": np.zeros(3, np.int32)}
    return from_arrays(coo(dtype), (1, 1), **arrays, data=values)


def test_sums_of_duplicates_are_rounded_and_wrap():
    int8_sums = duplicates_of(np.array([100, 50, 1], np.int8), "int8").asformat("csr")
    assert int8_sums.toarray()[0, 0] == np.int8(151 - 256)
    half_sums = duplicates_of(np.array([2048, 1, 0], np.float16), "float16").asformat("csr")
    assert half_sums.toarray()[0, 0] == 2048
    # The sum of values of bfloat16 is rounded once: each addend is too small by itself.
    bits = encode_bfloat16(np.array([256.0, 1.0, 1.0], np.float32))
    assert duplicates_of(bits, "bfloat16").asformat("csr").toarray()[0, 0] == 258


def test_zeros_of_bfloat16_are_found_by_value():
    bits = encode_bfloat16(np.array([-0.0, 2.0], np.float32))
    arrays = {"indptr": np.array([0, 2]), "indices": np.array([0, 1])}
    tensor = from_arrays(csr("bfloat16"), (1, 2), **arrays, data=bits)
    assert tensor.asformat("csr", zeros="drop").nnz == 1


VALUES = np.array([0.1, 1.00390625, 1.01171875, 1e-3, 70000.0, -1e39, np.inf, -2.5, 127.9, -500.0])


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_are_rounded_to_the_nearest(source):
    tensor = from_scipy(sparse.csr_array(VALUES[None])).astype(source)
    with np.errstate(over="ignore"):
        exact = VALUES.astype(source)
        np.testing.assert_array_equal(
            tensor.astype("float16").toarray()[0], exact.astype("float16")
        )
        nearest = encode_bfloat16(round_bfloat16(exact))
    rounded = tensor.astype("bfloat16")
    np.testing.assert_array_equal(rounded.arrays["data"], nearest)
    np.testing.assert_array_equal(rounded.toarray()[0], decode_bfloat16(rounded.arrays["data"]))
    np.testing.assert_array_equal(rounded.astype("float64").toarray(), rounded.toarray())


def test_floats_become_int8_with_saturation():
    values = np.array([[1.9, -1.9, 127.5, 1e9, -129.0, np.inf, -np.inf, np.nan]])
    expected = [1, -1, 127, 127, -128, 127, -128, 0]
    for source in ("float64", "float32", "float16", "bfloat16"):
        tensor = from_scipy(sparse.csr_array(values)).astype(source)
        np.testing.assert_array_equal(tensor.astype("int8").arrays["data"], expected)


def test_the_magnitude_of_the_least_int8_is_128():
    tensor = tensor_of(np.array([[-128, 127, 100, 1]]), "int8")
    np.testing.assert_array_equal(prune(tensor, "2:4").toarray(), [[-128, 127, 0, 0]])


@pytest.mark.parametrize("dtype", NARROW)
def test_reductions_have_the_dtype_of_sums(dtype):
    dense = integers()
    tensor = tensor_of(dense, dtype)
    for name in ("sum", "max", "min"):
        for axis in (None, 0, 1):
            result = getattr(tensor, name)(axis=axis)
            assert result.dtype == {"int8": "int32"}.get(dtype, "float32")
            np.testing.assert_array_equal(result, getattr(dense, name)(axis=axis))
    mean = tensor.mean(axis=1)
    assert mean.dtype == {"int8": "float64"}.get(dtype, "float32")
    np.testing.assert_allclose(mean, dense.mean(axis=1), rtol=1e-6)


def test_products_with_a_number_have_the_dtype_of_numpy():
    dense = integers()
    for dtype, factor, expected in (
        ("int8", 2, "int8"),
        ("int8", 0.5, "float64"),
        ("float16", 0.5, "float16"),
        ("bfloat16", 0.5, "float32"),
    ):
        product = tensor_of(dense, dtype) * factor
        assert product.value_dtype == expected
        np.testing.assert_array_equal(product.toarray(), dense * factor)


@pytest.mark.parametrize("dtype", NARROW)
def test_scipy_and_files_hold_what_they_can(dtype, tmp_path):
    dense = integers()
    tensor = tensor_of(dense, dtype)
    if dtype == "int8":
        assert to_scipy(tensor).dtype == "int8"
        np.testing.assert_array_equal(from_scipy(to_scipy(tensor)).toarray(), dense)
    else:
        with pytest.raises(FormatError, match="expected float32, float64 or int8"):
            to_scipy(tensor)
    if dtype == "bfloat16":
        with pytest.raises(FormatError, match="The dtype is bfloat16; expected"):
            write(tensor, tmp_path / "a.mtx")
    else:
        write(tensor, tmp_path / "a.mtx")
        np.testing.assert_array_equal(read(tmp_path / "a.mtx", dtype=dtype).toarray(), dense)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_tensor_in_parts_keeps_the_dtype(dtype):
    dense = integers()
    parts = decompose(tensor_of(dense, dtype), "hyb", c=2)
    assert parts.dtype == dtype
    np.testing.assert_array_equal(parts.toarray(), dense)


@pytest.mark.parametrize(
    "make",
    [
        lambda: decompose(tensor_of(integers(), "bfloat16"), "hyb"),
        lambda: from_scipy(sparse.eye_array(2), dtype="bfloat16", copy=False),
        lambda: from_arrays(
            "csr",
            (1, 1),
            indptr=np.array([0, 1]),
            indices=np.array([0]),
            data=np.ones(1, np.uint16),
        ),
        lambda: from_arrays(
            csr("bfloat16"), (1, 1), indptr=np.array([0, 1]), indices=np.array([0]), data=np.ones(1)
        ),
        lambda: prune(np.ones((1, 4), np.int16), "2:4"),
    ],
    ids=["parts", "borrowed", "uint16", "float64", "pruned"],
)
def test_what_cannot_hold_a_dtype_is_refused(make):
    with pytest.raises(FormatError) as caught:
        make()
    assert caught.value.code in ("format.dtype", "format.copy")
