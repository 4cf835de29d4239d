"""Products are right wherever their arrays begin, and large results begin at a cache line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_backend.call.allocation import LARGE_ARRAY, aligned_empty, new_array
from gossamer_machine.cache_line import LINE_BYTES
from gossamer_testkit.matrices.oracles import tolerance


def copied(array, *, offset):
    """A copy that begins `offset` bytes after the start of a cache line."""
    copy = aligned_empty(array.shape, array.dtype, offset=offset)
    copy[...] = array
    return copy


def matrix(rows, columns, nnz, dtype):
    rng = np.random.default_rng(7)
    at = rng.integers(0, rows, nnz), rng.integers(0, columns, nnz)
    return sparse.csr_matrix((rng.random(nnz).astype(dtype), at), shape=(rows, columns))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("features", [8, 16, 32, 48, 100, 128, 272, 512])
def test_products_are_right_wherever_the_dense_operand_begins(features, dtype):
    a = matrix(60, 90, 700, dtype)
    b = np.random.default_rng(1).random((90, features)).astype(dtype)
    # Both are rounded, and nothing is negative.
    expected, rounding = a @ b, tolerance(2 * 90, dtype)
    for offset in range(0, LINE_BYTES, np.dtype(dtype).itemsize):
        np.testing.assert_allclose(gs.spmm(a, copied(b, offset=offset)), expected, rtol=rounding)


@pytest.mark.parametrize("features", [128, 100])
def test_large_results_are_right_wherever_they_begin(features):
    """From 16 MB on they are stored around the caches, if they are aligned."""
    a = matrix(1 << 15, 1 << 15, 1 << 17, "float32")
    b = np.random.default_rng(1).random((1 << 15, features), dtype=np.float32)
    expected, longest = a @ b, int(np.diff(a.indptr).max())
    for offset in (0, 16, 4):
        out = copied(np.full(expected.shape, np.nan, np.float32), offset=offset)
        gs.spmm(a, b, out=out)
        np.testing.assert_allclose(out, expected, rtol=tolerance(2 * longest, "float32"))


def test_large_results_begin_at_a_cache_line():
    a = matrix(1 << 12, 1 << 12, 1 << 13, "float32")
    b = np.ones((1 << 12, 128), np.float32)
    for _ in range(2):  # by the function, then by a plan
        result = gs.spmm(a, b)
        assert result.nbytes >= LARGE_ARRAY
        assert result.ctypes.data % LINE_BYTES == 0
        assert result.flags.c_contiguous
        assert result.flags.writeable


def test_small_arrays_own_their_memory():
    assert new_array((10, 10), np.dtype("float32")).base is None
