"""SpMM and SpMV, built by hand in the flat stage, against dense NumPy on integer-valued data."""

import numpy as np
import pytest

from gossamer_backend.call.threads import set_num_threads

SHAPES = [(37, 50), (1, 1), (5, 1), (64, 3), (3, 0), (0, 4), (0, 0)]
TYPES = [("float32", "int32"), ("float32", "int64"), ("float64", "int32"), ("float64", "int64")]


def integers(*shape, dtype, seed=1):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize(("dtype", "index_dtype"), TYPES)
@pytest.mark.parametrize("features", [1, 7, 16, 100, 128])
def test_spmm_equals_dense_product(spmm, build, random_csr, dense_of, features, dtype, index_dtype):
    lanes = 16 if dtype == "float32" else 8
    kernel = build(spmm(features, lanes=lanes, dtype=dtype, index_dtype=index_dtype))
    for rows, columns in SHAPES:
        csr = random_csr(rows, columns, index_dtype=index_dtype, dtype=dtype)
        dense = integers(columns, features, dtype=dtype)
        for threads in (1, 2, 5):
            set_num_threads(threads)
            result = np.full((rows, features), 7, dtype)
            kernel(*csr, dense, result)
            assert np.array_equal(result, dense_of(csr, columns) @ dense)


@pytest.mark.parametrize(("dtype", "index_dtype"), TYPES)
def test_spmv_equals_dense_product(spmv, build, random_csr, dense_of, dtype, index_dtype):
    lanes = 16 if dtype == "float32" else 8
    kernel = build(spmv(lanes=lanes, dtype=dtype, index_dtype=index_dtype))
    for rows, columns in SHAPES:
        csr = random_csr(rows, columns, index_dtype=index_dtype, dtype=dtype, longest=40)
        vector = integers(columns, dtype=dtype)
        result = np.full(rows, 7, dtype)
        kernel(*csr, vector, result)
        assert np.array_equal(result, dense_of(csr, columns) @ vector)


def test_arrays_need_no_alignment(spmm, build, random_csr, dense_of):
    csr = random_csr(20, 30)
    values, dense, result = (
        shifted(a)
        for a in (csr[2], integers(30, 33, dtype="float32"), np.zeros((20, 33), np.float32))
    )
    build(spmm(33))(csr[0], shifted(csr[1]), values, dense, result)
    assert np.array_equal(result, dense_of(csr, 30) @ dense)


def test_nothing_is_written_after_the_result(spmm, build, random_csr):
    csr = random_csr(20, 30)
    memory = np.full(20 * 33 + 64, 5, np.float32)
    result = memory[: 20 * 33].reshape(20, 33)
    build(spmm(33))(*csr, integers(30, 33, dtype="float32"), result)
    assert (memory[20 * 33 :] == 5).all()


def test_infinities_and_nans_stay_in_their_rows(spmm, build):
    indptr, indices = np.array([0, 1, 1, 2], np.int32), np.array([0, 1], np.int32)
    values = np.array([np.inf, 2], np.float32)
    dense = np.array([[1, -1, 0], [np.nan, 3, -0.0]], np.float32)
    result = np.zeros((3, 3), np.float32)
    build(spmm(3))(indptr, indices, values, dense, result)
    expected = [[np.inf, -np.inf, np.nan], [0, 0, 0], [np.nan, 6, 0]]
    assert np.array_equal(result, np.array(expected, np.float32), equal_nan=True)


def shifted(array):
    """The same values one element after an aligned address."""
    memory = np.empty(array.size + 1, array.dtype)
    memory[1:] = array.ravel()
    return memory[1:].reshape(array.shape)
