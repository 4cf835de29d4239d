"""The contender that takes the fastest algorithm of cuSPARSE, on a library that multiplies on the host."""

from __future__ import annotations

import ctypes
import shutil

import numpy as np
import pytest
from scipy import sparse

from benchmarks.contenders.contender import UnavailableError
from benchmarks.gpu.cusparse import Cusparse, CusparseError, DeviceMatrix, spmm_calls
from tests.benchmarks.fake_libraries import fake_cusparse

pytestmark = [
    pytest.mark.unserialized,
    pytest.mark.no_error_examples,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc compiles the fake library"),
]
STREAM = 7


@pytest.fixture(scope="module")
def library():
    return fake_cusparse()


def calls_of(library, dtype):
    """The calls by the names of their algorithms, with the arrays of the product."""
    generator = np.random.default_rng(3)
    csr = sparse.random_array((9, 7), density=0.3, format="csr", dtype=dtype, rng=generator)
    csr.indptr, csr.indices = csr.indptr.astype(np.int32), csr.indices.astype(np.int32)
    right, out = generator.random((7, 5)).astype(dtype), np.full((9, 5), 3, dtype)
    arrays = (csr.indptr, csr.tocoo().coords[0].astype(np.int32), csr.indices, csr.data)
    matrix = DeviceMatrix(csr.shape, csr.nnz, dtype, *(array.ctypes.data for array in arrays))
    buffers = []

    def allocate(size):
        buffers.append(np.empty(size, np.int8))
        return buffers[-1].ctypes.data

    places = (right.ctypes.data, out.ctypes.data)
    calls = dict(spmm_calls(Cusparse(STREAM, library), matrix, *places, 5, allocate))
    return calls, out, csr @ right, (arrays, right, buffers)


def test_each_algorithm_that_the_library_has_multiplies(library):
    calls, out, expected, _kept = calls_of(library, "float32")
    assert list(calls) == ["default", "CSR 1", "CSR 2", "COO 1", "COO 2", "COO 3", "COO 4"]
    counts = (ctypes.c_int * 16).in_dll(ctypes.CDLL(library), "fake_products")
    for name, call in calls.items():
        before = list(counts)
        out.fill(8)
        call()
        np.testing.assert_allclose(out, expected, rtol=1e-6, err_msg=name)
        assert sum(counts) == sum(before) + 1
    assert ctypes.c_void_p.in_dll(ctypes.CDLL(library), "fake_stream").value == STREAM


def test_a_dtype_that_no_algorithm_takes_has_no_calls(library):
    assert calls_of(library, "float64")[0] == {}


def test_statuses_are_errors(library):
    with pytest.raises(CusparseError, match="cusparseSetStream returned the status 3"):
        Cusparse(STREAM, library).call("cusparseSetStream", None, None)


def test_a_library_that_is_not_there_is_a_contender_that_is_missing():
    with pytest.raises(UnavailableError, match="cuSPARSE cannot be loaded"):
        Cusparse(STREAM, "libcusparse-of-nothing.so")
