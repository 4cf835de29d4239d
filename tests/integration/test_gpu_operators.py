"""Operators on arrays of a GPU, by a library that stands in for that of the driver. The interpreter of PTX
runs the kernels, also those that check index arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_backend import Device
from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_ir.errors import ArgumentError
from gossamer_testkit import script

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

TARGET = "cuda-mma-sp:driver=ctypes"
ROWS, COLUMNS, FEATURES = 6, 5, 4


def on_gpu(array):
    return CudaBackend().to_device(array, device=Device(2, 0))


def csr_on_gpu(matrix, *, indices=None):
    indices = matrix.indices if indices is None else indices
    return gs.CsrArrays(matrix.shape, *map(on_gpu, (matrix.indptr, indices, matrix.data)))


@pytest.mark.parametrize("features", [64, 128])
def test_wide_rows_are_computed_in_vectors(features):
    matrix = sparse.random_array((7, 6), density=0.4, format="csr", rng=1, dtype=np.float32)
    matrix.data[:] = np.arange(1, matrix.nnz + 1)
    dense = np.arange(6 * features, dtype=np.float32).reshape(6, features) % 17
    result = np.full((7, features), -1, np.float32)
    kernel = gs.compile(
        script("csr_spmm"),
        target="cuda-mma-sp:driver=interpreter",
        specialize={"feat_size": features},
    )
    indptr, indices = (array.astype(np.int32) for array in (matrix.indptr, matrix.indices))
    kernel(matrix.data, dense, result, indptr, indices)
    assert np.array_equal(result, matrix @ dense)


@pytest.mark.parametrize(("dtype", "features"), [("float32", 32), ("float16", 16), ("int8", 256)])
def test_sums_over_features_are_computed_in_vectors(dtype, features):
    mask = sparse.random_array((7, 6), density=0.4, format="csr", rng=1, dtype=np.float32)
    rng = np.random.default_rng(0)
    X, Y = (rng.integers(-2, 3, (rows, features)).astype(dtype) for rows in (7, 6))
    computed = gs.sddmm(mask, X, Y, target="cuda-mma-sp:driver=interpreter")
    row, column = mask.tocoo().coords
    expected = np.einsum("ij,ij->i", X.astype(np.float64)[row], Y.astype(np.float64)[column])
    assert np.array_equal(computed.astype(np.float64), expected)


def test_operators_run_on_a_gpu(gpu):
    matrix = sparse.random_array(
        (ROWS, COLUMNS), density=0.5, format="csr", rng=1, dtype=np.float32
    )
    matrix.data[:] = np.arange(1, matrix.nnz + 1)
    dense = np.arange(COLUMNS * FEATURES, dtype=np.float32).reshape(COLUMNS, FEATURES)
    A, B = csr_on_gpu(matrix), on_gpu(dense)
    C = gs.spmm(A, B, target=TARGET)
    assert np.array_equal(C.to_numpy(), matrix @ dense)
    y = gs.spmv(A, on_gpu(dense[:, 1].copy()), target=TARGET)
    assert np.array_equal(y.to_numpy(), matrix @ dense[:, 1])
    step = gs.spmm.bind(A, B, out=C, target=TARGET)
    before = len(gpu.calls)
    step()
    assert gpu.calls[before:] == ["cuCtxPushCurrent", "cuLaunchKernel", "cuCtxPopCurrent"]
    wrong = matrix.indices.copy()
    wrong[2] = COLUMNS
    with pytest.raises(ArgumentError, match="Element 2 of 'indices' is 5"):
        gs.spmm(csr_on_gpu(matrix, indices=wrong), B, target=TARGET)


def test_attention_takes_heads_of_a_gpu(gpu):
    pattern = sparse.csr_array(np.tri(4, dtype=np.float32))
    Q, K, V = (np.zeros((2, 4, 3), np.float32) for _ in range(3))
    V[0], V[1] = 1, np.arange(4)[:, np.newaxis]
    before = len(gpu.calls)
    result = gs.attention(csr_on_gpu(pattern), *map(on_gpu, (Q, K, V)), target=TARGET)
    # Equal scores: the mean of the rows up to each one.
    means = np.cumsum(V, axis=1) / np.arange(1, 5)[:, np.newaxis]
    np.testing.assert_allclose(result.to_numpy(), means, rtol=1e-6)
    assert gpu.calls[before:].count("cuLaunchKernel") >= 2 * 6
